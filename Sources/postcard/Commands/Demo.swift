import ArgumentParser
import Crypto
import Foundation
import Logging
import PostcardAsyncHTTP
import PostcardClient
import PostcardForm
import PostcardSamples
import PostcardReceiver
import PostcardServer
import ServiceLifecycle

struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Sends sample pictures to its own receiver, and checks what arrived.",
        discussion: "The exit status is 0 only if the digest of every stored file equals that of the picture.")

    @Option(help: "Where the form is kept.")
    var directory = "./received"

    func run() async throws {
        try await CommandFailure.reporting {
            var receiver = Receiver(directory: directory)
            receiver.port = 0
            receiver.logger = Logger(label: "postcard") { _ in SwiftLogNoOpLogHandler() }
            let (addresses, continuation) = AsyncStream.makeStream(of: String.self)
            let services = ServiceGroup(
                services: [try receiver.application { continuation.yield($0) }], logger: receiver.logger)
            try await withThrowingTaskGroup { group in
                group.addTask {
                    defer { continuation.finish() }
                    try await services.run()
                }
                let result: Result<Void, any Error>
                do {
                    try await deliver(to: addresses)
                    result = .success(())
                } catch {
                    result = .failure(error)
                }
                await services.triggerGracefulShutdown()
                // If the receiver could not start, its error is the one to report.
                try await group.waitForAll()
                try result.get()
            }
        }
    }

    /// Sends the pictures as soon as the receiver's address is known.
    private func deliver(to addresses: AsyncStream<String>) async throws {
        guard let address = await addresses.first(where: { _ in true }), let url = URL(string: "\(address)/uploads")
        else {
            throw CommandFailure(description: "The receiver did not start", status: ExitStatus.unavailable)
        }
        let pictures = try SamplePictures.all()
        try Terminal.writeLine("The receiver listens on \(address)")
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append("Greetings from Jeju", named: "message")
        form.append(filesAt: pictures, named: "picture")
        let screen = Terminal.isInteractive ? ProgressScreen() : nil
        let response = try await UploadClient(transport: AsyncHTTPTransport())
            .upload(form, to: url, progress: screen.map { $0.show })
        screen?.finish()
        try report(try UploadRecord(json: response.body), of: pictures)
    }

    /// Compares the stored files with what was sent.
    private func report(_ record: UploadRecord, of pictures: [URL]) throws {
        for field in record.fields { try Terminal.writeLine("\(field.name): \(field.value)") }
        guard record.files.count == pictures.count else {
            throw CommandFailure(
                description: "\(pictures.count) pictures were sent, and \(record.files.count) arrived",
                status: ExitStatus.failed)
        }
        let folder = URL(filePath: directory).appending(path: record.id.description)
        var areSame = true
        for (index, picture) in pictures.enumerated() {
            let stored = try Self.digest(of: folder.appending(path: "\(index)"))
            let isSame = try stored == Self.digest(of: picture)
            areSame = areSame && isSame
            try Terminal.writeLine(
                "\(stored)  \(isSame ? "same" : "DIFFERS")  \(picture.lastPathComponent)")
        }
        try Terminal.writeLine("Saved to \(folder.path)")
        if !areSame { throw ExitStatus.failed }
    }

    private static func digest(of file: URL) throws -> String {
        SHA256.hash(data: try Data(contentsOf: file)).hexadecimal
    }
}
