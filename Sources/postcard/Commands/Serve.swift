import ArgumentParser
import Logging
import PostcardForm
import PostcardServer

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Receives forms and keeps them in a directory.",
        discussion: "SIGTERM and SIGINT let the requests under way finish, then it exits 0.")

    @Option(help: "The address to listen on.")
    var host = "127.0.0.1"

    @Option(help: "The port to listen on; 0 picks a free one.")
    var port = 8080

    @Option(help: "Where the forms are kept.")
    var directory = "./received"

    @Option(help: ArgumentHelp("The most bytes of a body, such as 100MB.", valueName: "size"))
    var maxBody: ByteCount?

    @Option(help: ArgumentHelp("The most bytes of a file.", valueName: "size"))
    var maxFile: ByteCount?

    @Option(help: ArgumentHelp("The most bytes of a text field.", valueName: "size"))
    var maxField: ByteCount?

    @Option(help: "Where forms are posted, such as /api/v1/images.")
    var path = "/uploads"

    @Flag(
        inversion: .prefixedNo, exclusivity: .exclusive,
        help: "Keep the last requests, with what is wrong with them, to be looked at on the page.")
    var inspect = true

    func validate() throws {
        guard (0...65535).contains(port) else { throw ValidationError("There is no port \(port).") }
        guard path.hasPrefix("/"), !path.contains("//"), !path.contains(where: { "?#{}*: ".contains($0) }) else {
            throw ValidationError("'\(path)' is no path. Write it with a slash in front, such as /api/v1/images.")
        }
    }

    func run() async throws {
        var receiver = Receiver(directory: directory)
        receiver.host = host
        receiver.port = port
        receiver.uploads.path = path
        receiver.uploads.limits = limits
        if !inspect { receiver.inspection = nil }
        receiver.logger = Logger(label: "postcard") { StreamLogHandler.standardError(label: $0) }
        receiver.logger.logLevel = .warning
        try await CommandFailure.reporting { [receiver] in
            do {
                try await receiver.run { url in
                    // Whoever started the receiver and went away does not keep it from receiving.
                    try? Terminal.writeLine("listening on \(url)")
                }
            } catch  where !(error is UploadStoreError) {
                throw CommandFailure(
                    description: "Cannot listen on \(host):\(port): \(error)", status: ExitStatus.unavailable)
            }
        }
    }

    private var limits: FormLimits {
        var limits = FormLimits()
        if let maxBody {
            limits.maximumBodyBytes = maxBody.bytes
            // A file may fill the body that was asked for.
            limits.maximumFileBytes = maxBody.bytes
        }
        if let maxFile { limits.maximumFileBytes = maxFile.bytes }
        if let maxField { limits.maximumFieldBytes = maxField.bytes }
        return limits
    }
}
