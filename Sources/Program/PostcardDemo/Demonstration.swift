import Crypto
import Foundation
import Hummingbird
import Logging
package import PostcardClient
import PostcardForm
import PostcardSamples
import PostcardServer
import ServiceLifecycle
import SystemPackage

/// Sends the sample pictures to its own receiver, and compares the received files byte by byte.
///
/// The receiver has only the upload routes, so that `make demo` compiles fast.
package struct Demonstration {
    /// The directory in which the receiver stores the form.
    package let directory: String
    /// Called with each line of the result.
    package let report: (String) throws -> Void
    package let transport: any UploadTransport
    /// Called with the progress of the upload; `nil` to show no progress.
    package var progress: (@Sendable (UploadProgress) -> Void)?

    /// Makes a demonstration that reports to a closure.
    ///
    /// The transport defaults to URLSession, which needs libcurl on Linux.
    package init(
        directory: String, transport: any UploadTransport = URLSessionTransport(),
        report: @escaping (String) throws -> Void
    ) {
        self.directory = directory
        self.transport = transport
        self.report = report
    }

    /// The reason why a demonstration failed.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// Starts the receiver, sends the pictures, and compares the received files. Throws ``Failure`` if the received
    /// files differ from the pictures, `UploadError` if the form cannot be sent, and `UploadStoreError` if the
    /// directory cannot be used.
    package func run() async throws {
        let router = Router()
        router.addUploads(to: try LocalUploadStore(directory: FilePath(directory)))
        let (ports, continuation) = AsyncStream.makeStream(of: Int?.self)
        let logger = Logger(label: "postcard") { _ in SwiftLogNoOpLogHandler() }
        let application = Application(
            router: router, server: .uploads(),
            configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { continuation.yield($0.localAddress?.port) }, logger: logger)
        let services = ServiceGroup(services: [application], logger: logger)
        try await withThrowingTaskGroup { group in
            group.addTask {
                defer { continuation.finish() }
                try await services.run()
            }
            let result: Result<Void, any Error>
            do {
                try await send(to: ports)
                result = .success(())
            } catch {
                result = .failure(error)
            }
            await services.triggerGracefulShutdown()
            // If the receiver could not start, sending fails too. The receiver's error is the cause, so it is thrown
            // first.
            try await group.waitForAll()
            try result.get()
        }
    }

    /// Sends the pictures as soon as the receiver's port is known.
    private func send(to ports: AsyncStream<Int?>) async throws {
        guard let port = await ports.first(where: { _ in true }) ?? nil,
            let url = URL(string: "http://127.0.0.1:\(port)/uploads")
        else { throw Failure(description: "The receiver did not start") }
        let pictures = try SamplePictures.all()
        try report("The receiver listens on http://127.0.0.1:\(port)")
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append("Greetings from Jeju", named: "message")
        form.append(filesAt: pictures, named: "picture")
        let response = try await UploadClient(transport: transport).upload(form, to: url, progress: progress)
        try compare(try UploadRecord(json: response.body), with: pictures)
    }

    private func compare(_ record: UploadRecord, with pictures: [URL]) throws {
        for field in record.fields { try report("\(field.name): \(field.value)") }
        guard record.files.count == pictures.count else {
            throw Failure(
                description: "\(pictures.count) pictures were sent, and \(record.files.count) arrived")
        }
        let folder = URL(filePath: directory).appending(path: record.id.description)
        var differing: [String] = []
        for (index, picture) in pictures.enumerated() {
            let stored = try Self.digest(of: folder.appending(path: "\(index)"))
            let isSame = try stored == Self.digest(of: picture)
            if !isSame { differing.append(picture.lastPathComponent) }
            try report("\(stored)  \(isSame ? "same" : "DIFFERS")  \(picture.lastPathComponent)")
        }
        try report("Saved to \(folder.path)")
        guard differing.isEmpty else {
            throw Failure(description: "Not what was sent: \(differing.joined(separator: ", "))")
        }
    }

    private static func digest(of file: URL) throws -> String {
        SHA256.hash(data: try Data(contentsOf: file)).hexadecimal
    }
}
