import ArgumentParser

/// The address, the port and the path at which a receiver listens.
struct ListeningOptions: ParsableArguments {
    @Option(help: "The address to listen on. One that other machines reach needs --token, --token-file or --open.")
    var host = "127.0.0.1"

    @Option(help: "The port to listen on; 0 picks a free one.")
    var port = 8080

    @Option(help: "Where forms are posted, such as /api/v1/images.")
    var path = "/uploads"

    func validate() throws {
        guard (0...65535).contains(port) else { throw ValidationError("\(port) is not a port.") }
        guard path.hasPrefix("/"), !path.contains("//"), !path.contains(where: { "?#{}*: ".contains($0) }) else {
            throw ValidationError("'\(path)' is not a valid path. Begin it with a slash, such as /api/v1/images.")
        }
    }
}
