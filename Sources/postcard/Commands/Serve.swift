import ArgumentParser
import Logging
import PostcardForm
import PostcardReceiver
import PostcardServer

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Receives forms and keeps them in a directory.",
        discussion: """
            After SIGTERM or SIGINT requests in progress may finish for as long as --shutdown-timeout says. Then their \
            connections are closed, and it exits 0. A second signal ends it at once, with the signal's status (143 or \
            130 in a shell).
            """)

    @Option(help: "The address to listen on. Another than this machine's own wants --token, --token-file or --open.")
    var host = "127.0.0.1"

    @Option(help: "The port to listen on; 0 picks a free one.")
    var port = 8080

    @Option(help: "Where the forms are kept.")
    var directory = "./received"

    @Option(help: "Where forms are posted, such as /api/v1/images.")
    var path = "/uploads"

    @Option(
        help: ArgumentHelp("How long requests in progress may take to finish at the end (30).", valueName: "seconds"))
    var shutdownTimeout: Double?

    @Flag(
        inversion: .prefixedNo, exclusivity: .exclusive,
        help: "Keep the last requests, with what is wrong with them, to be looked at on the page.")
    var inspect = true

    @Option(
        help: ArgumentHelp("How much is logged: debug, info, notice, warning, error.", valueName: "level"),
        transform: { text in
            guard let level = Logger.Level(rawValue: text) else { throw ValidationError("'\(text)' is no level.") }
            return level
        })
    var logLevel = Logger.Level.warning

    @OptionGroup(title: "What is taken") var taking: ReceivingOptions
    @OptionGroup(title: "What a form may consist of") var limits: FormLimitOptions
    @OptionGroup(title: "Who is let in") var access: AccessOptions

    func validate() throws {
        guard (0...65535).contains(port) else { throw ValidationError("There is no port \(port).") }
        guard path.hasPrefix("/"), !path.contains("//"), !path.contains(where: { "?#{}*: ".contains($0) }) else {
            throw ValidationError("'\(path)' is no path. Write it with a slash in front, such as /api/v1/images.")
        }
        if let shutdownTimeout, !(0...86400).contains(shutdownTimeout) {
            throw ValidationError("--shutdown-timeout wants seconds, from 0 to 86400.")
        }
        try access.validate(host: host)
    }

    func run() async throws {
        try await CommandFailure.reporting {
            OpenFiles.allowAsManyAsPossible()
            let receiver = try receiver()
            do {
                try await receiver.run { url in
                    // Whoever started the receiver and went away does not keep it from receiving.
                    try? Terminal.writeLine("listening on \(url)")
                }
            } catch  where !(error is UploadStoreError || error is ServerCertificateError) {
                throw CommandFailure(
                    description: "Cannot listen on \(host):\(port): \(error)", status: ExitStatus.unavailable)
            }
        }
    }

    private func receiver() throws -> Receiver {
        var receiver = Receiver(directory: directory)
        receiver.host = host
        receiver.port = port
        receiver.uploads.path = path
        if !inspect { receiver.inspection = nil }
        if let shutdownTimeout { receiver.connections.shutdownTimeout = .seconds(shutdownTimeout) }
        limits.apply(to: &receiver.uploads.limits)
        try taking.apply(to: &receiver)
        try access.apply(to: &receiver)
        receiver.logger = Logger(label: "postcard") { StreamLogHandler.standardError(label: $0) }
        receiver.logger.logLevel = logLevel
        return receiver
    }
}
