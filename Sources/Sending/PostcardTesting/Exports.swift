// `import PostcardTesting` also imports the client of the tested app, and the Doctor, which explains requests.
@_exported public import PostcardClient
@_exported public import PostcardDoctor
