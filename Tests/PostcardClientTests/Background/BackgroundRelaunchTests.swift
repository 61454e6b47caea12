import Foundation
import HTTPTypes
import PostcardForm
import PostcardTestSupport
import Testing

@testable import PostcardClient

/// A program that ends in the middle, and another that comes after it.
@Suite(.timeLimit(.minutes(10))) struct BackgroundRelaunchTests {
    private static func form(_ picture: URL) -> MultipartForm {
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append(fileAt: picture, named: "petImage")
        return form
    }

    private static func uploads(in folder: URL, restartsLost: Bool = false) async throws -> BackgroundUploads {
        try await BackgroundUploads(identifier: "test", directory: folder, restartsLost: restartsLost)
    }

    private static func isLost(_ state: BackgroundUpload.State?) -> Bool {
        if case .lost(mayHaveArrived: true) = state { true } else { false }
    }

    /// Adds an upload in a process of its own, which is killed once bytes of it have gone out.
    private static func killInTheMiddle(of folder: TemporaryFolder, to url: URL, token: String) async throws {
        let picture = try folder.file("a.jpg", size: 30_000_000).path
        let (directory, address) = (folder.url.appending(component: "uploads").path, url.absoluteString)
        try await BlockingTurn.take {
            try await #require(processExitsWith: .signal(SIGKILL)) {
                [
                    picture = picture as String, directory = directory as String, address = address as String,
                    token = token as String
                ] in
                alarm(120)
                let uploads = try await BackgroundUploads(identifier: "test", directory: URL(filePath: directory))
                var form = MultipartForm()
                form.append(fileAt: URL(filePath: picture), named: "petImage")
                let url = try #require(URL(string: address))
                try await uploads.add(
                    form, to: url, headerFields: token.isEmpty ? HTTPFields() : [.authorization: token])
                for await list in uploads.updates {
                    if case .sending(let bytesSent) = list.first?.state, bytesSent > 5_000_000 {
                        kill(getpid(), SIGKILL)
                    }
                }
            }
        }
        try FileManager.default.removeItem(at: URL(filePath: picture))
    }

    /// Does something with a server once a process has been killed in the middle of an upload to it.
    private static func withServer(
        afterKillIn folder: TemporaryFolder, token: String = "",
        _ work: @escaping @Sendable (RawServer) async throws -> Void
    ) async throws {
        try await RawServer.runLeavingFirstUnanswered { server, firstArrived in
            try await killInTheMiddle(of: folder, to: server.url, token: token)
            // The server may read what was sent after its sender is gone.
            await firstArrived.wait()
            try await work(server)
        }
    }

    @Test func `after a kill the next program finds the upload lost, and sends the same form under the same key`()
        async throws
    {
        let folder = try TemporaryFolder()
        try await Self.withServer(afterKillIn: folder) { server in
            let uploads = try await Self.uploads(in: folder.url.appending(component: "uploads"))
            let upload = try #require(uploads.uploads.first)
            #expect(uploads.uploads.count == 1)
            #expect(Self.isLost(upload.state))
            #expect(upload.attempts == 1)
            let error = await #expect(throws: BackgroundUploadError.self) {
                try await uploads.response(of: upload.id)
            }
            #expect(error?.code == .lost)
            #expect(server.requests.heads.count == 1)

            try await uploads.restart(upload.id)
            #expect(try await uploads.response(of: upload.id).text == "taken")
            let heads = server.requests.heads
            #expect(heads.count == 2)
            #expect(heads[0]["Idempotency-Key"] == heads[1]["Idempotency-Key"])
            #expect(heads[0]["Content-Type"] == heads[1]["Content-Type"])
            #expect(server.requests.whole.first.map { Int64($0.body.count) } == upload.totalBytes)
            await uploads.close()
        }
    }

    @Test func `what was lost is begun anew at once where that is asked for`() async throws {
        let folder = try TemporaryFolder()
        try await Self.withServer(afterKillIn: folder) { server in
            let uploads = try await Self.uploads(
                in: folder.url.appending(component: "uploads"), restartsLost: true)
            let upload = try #require(uploads.uploads.first)
            #expect(try await uploads.response(of: upload.id).text == "taken")
            await uploads.close()
        }
    }

    @Test func `a secret is not on disk, and has to be given again`() async throws {
        let folder = try TemporaryFolder()
        try await Self.withServer(afterKillIn: folder, token: "Bearer abc") { server in
            let directory = folder.url.appending(component: "uploads")
            let uploads = try await Self.uploads(in: directory, restartsLost: true)
            let upload = try #require(uploads.uploads.first)
            #expect(Self.isLost(upload.state))
            let manifest = directory.appending(path: "\(upload.id.uuidString)/manifest.json")
            #expect(try !String(contentsOf: manifest, encoding: .utf8).contains("abc"))
            let error = await #expect(throws: BackgroundUploadError.self) { try await uploads.restart(upload.id) }
            #expect(error?.code == .headerFieldsNeeded)
            #expect(error?.message.contains("Authorization") == true)
            #expect(Self.isLost(uploads[upload.id]?.state))
            try await uploads.restart(upload.id, headerFields: [.authorization: "Bearer def"])
            #expect(try await uploads.response(of: upload.id).text == "taken")
            #expect(server.requests.heads.map { $0["Authorization"] } == ["Bearer abc", "Bearer def"])
            await uploads.close()
        }
    }

    @Test func `an answer that came before the kill is found without sending anything`() async throws {
        let folder = try TemporaryFolder()
        let picture = try folder.file("a.jpg", size: 1_000).path
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.respond("201 Created", body: "taken")
        } while: { server in
            let (directory, address) = (folder.url.appending(component: "uploads").path, server.url.absoluteString)
            try await BlockingTurn.take {
                try await #require(processExitsWith: .signal(SIGKILL)) {
                    [picture = picture as String, directory = directory as String, address = address as String] in
                    alarm(120)
                    let uploads = try await BackgroundUploads(identifier: "test", directory: URL(filePath: directory))
                    var form = MultipartForm()
                    form.append(fileAt: URL(filePath: picture), named: "petImage")
                    let url = try #require(URL(string: address))
                    let id = try await uploads.add(form, to: url)
                    _ = try await uploads.response(of: id)
                    kill(getpid(), SIGKILL)
                }
            }
            let uploads = try await Self.uploads(in: URL(filePath: directory), restartsLost: true)
            let upload = try #require(uploads.uploads.first)
            #expect(try await uploads.response(of: upload.id).text == "taken")
            #expect(server.requests.heads.count == 1)
            await uploads.close()
        }
    }

    @Test func `what was written and never begun is begun by the next program`() async throws {
        let folder = try TemporaryFolder()
        let picture = try folder.file("a.jpg", size: 1_000)
        let layout = try Self.form(picture).layout()
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.respond("201 Created", body: "taken")
        } while: { server in
            let directory = folder.url.appending(component: "uploads")
            let id = UUID()
            _ = try await UploadsFolder(directory).create(id, layout) { length in
                UploadManifest(
                    id: id, url: server.url, method: .post, contentType: layout.contentType,
                    headerFields: HTTPFields(), bodyLength: length, filenames: [], added: Date())
            }
            let uploads = try await Self.uploads(in: directory)
            #expect(try await uploads.response(of: id).text == "taken")
            #expect(server.requests.whole.first?.body == (try await layout.bytes()))
            await uploads.close()
        }
    }

    @Test func `another process that has the folder is named as the reason`() async throws {
        let folder = try TemporaryFolder()
        let held = try await Self.uploads(in: folder.url)
        await BlockingTurn.take {
            await #expect(processExitsWith: .success) { [path = folder.path as String] in
                alarm(120)
                let error = await #expect(throws: BackgroundUploadError.self) {
                    try await BackgroundUploads(identifier: "test", directory: URL(filePath: path))
                }
                #expect(error?.code == .folderInUse)
            }
        }
        await held.close()
    }
}
