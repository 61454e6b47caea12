import ArgumentParser
import PostcardForm

extension ByteCount: ExpressibleByArgument {
    public init?(argument: String) {
        self.init(argument)
    }
}
