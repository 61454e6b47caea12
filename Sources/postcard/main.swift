import ArgumentParser
import PostcardServer
print("hi")
