import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct FoundationProgressTests {
    @Test(arguments: Carrier.allCases)
    func `every part is a child, and the whole ends at 1 within its parent`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append("", named: "nothing")
        form.append(fileAt: try folder.file("a.jpg", size: 700_000), named: "image")
        form.append(SendingTests.stream(of: 3, length: nil), named: "log", filename: "log.txt")
        form.append("", named: "last")
        let sent = form
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.respond("201 Created")
        } while: { server in
            let parent = Progress(totalUnitCount: 2)
            let progress = Progress(totalUnitCount: 1)
            parent.addChild(progress, withPendingUnitCount: 1)
            let response = try await UploadClient(transport: carrier.transport())
                .upload(sent, to: server.url, reportingTo: progress)
            #expect(response.status == .created)
            #expect(progress.isFinished)
            #expect(progress.fractionCompleted == 1)
            // The stream counts as one byte until its length is known; nothing counts as one, and so does the response.
            #expect(progress.totalUnitCount == 6 + 1 + 700_000 + 1 + 1 + 1)
            #expect(progress.completedUnitCount == progress.totalUnitCount)
            #expect(parent.fractionCompleted == 0.5)
            #expect(progress.kind == .file)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a form without parts ends at 1 too`(carrier: Carrier) async throws {
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.respond("201 Created")
        } while: { server in
            let progress = Progress(totalUnitCount: 1)
            try await UploadClient(transport: carrier.transport())
                .upload(MultipartForm(), to: server.url, reportingTo: progress)
            #expect(progress.fractionCompleted == 1)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `an early response that the client accepts ends it at 1 as well`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        var form = MultipartForm()
        form.append(fileAt: try folder.sparseFile("large.bin", size: 64 << 20), named: "file")
        form.append(SendingTests.stream(of: 3, length: nil), named: "log", filename: "log.txt")
        let sent = form
        let ended = Gate()
        try await RawServer.run { connection in
            _ = try await connection.readHead()
            try await connection.respond("201 Created", ["Connection": "close"])
            // Nothing is read before the client has the response: a system's buffers do not hold 64 MiB.
            await ended.wait()
            _ = try await connection.readToEnd()
        } while: { server in
            defer { ended.open() }
            let progress = Progress(totalUnitCount: 1)
            var client = UploadClient(transport: carrier.transport())
            client.responses.acceptsEarly = true
            let response = try await client.upload(sent, to: server.url, reportingTo: progress)
            #expect(response.isEarly)
            #expect(response.bytesSent < 64 << 20)
            #expect(progress.fractionCompleted == 1)
            #expect(progress.isFinished)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `cancelling the progress, or the one above it, cancels the upload`(carrier: Carrier) async throws {
        let arrived = Gate()
        let closed = Gate()
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            arrived.open()
            _ = try? await connection.readToEnd()
            closed.open()
        } while: { server in
            let parent = Progress(totalUnitCount: 1)
            let progress = Progress(totalUnitCount: 1)
            parent.addChild(progress, withPendingUnitCount: 1)
            let cancelling = Task {
                await arrived.wait()
                parent.cancel()
            }
            await #expect(throws: CancellationError.self) {
                try await UploadClient(transport: carrier.transport())
                    .upload(MultipartForm(), to: server.url, reportingTo: progress)
            }
            await cancelling.value
            await closed.wait()
            #expect(progress.isCancelled)
        }
    }

    @Test func `a progress that was cancelled before sends nothing`() async throws {
        let url = try #require(URL(string: "http://127.0.0.1:9/"))
        let progress = Progress(totalUnitCount: 1)
        progress.cancel()
        await #expect(throws: CancellationError.self) {
            try await UploadClient().upload(MultipartForm(), to: url, reportingTo: progress)
        }
    }
}
