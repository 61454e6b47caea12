import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct DeliveryTests {
    @Test(arguments: Carrier.allCases)
    func `a form that did not go out whole never arrived`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        var form = MultipartForm()
        form.append(fileAt: try folder.sparseFile("large.bin", size: 64 << 20), named: "file")
        let sent = form
        try await RawServer.run { connection in
            _ = try await connection.readHead()
        } while: { server in
            let error = try await #require(throws: UploadError.self) {
                try await UploadClient(transport: carrier.transport()).upload(sent, to: server.url)
            }
            #expect(error.code == .connectionLost)
            #expect(error.delivery == .neverArrived, "\(error)")
            #expect(error.advice?.hasPrefix("No server has the whole form.") == true)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `of a form that went out whole the response is lost, whatever the later attempts say`(
        carrier: Carrier
    ) async throws {
        try await Responses.run([nil, ("503 Service Unavailable", [:])]) { server in
            let error = try await #require(throws: UploadError.self) {
                try await UploadClient(transport: carrier.transport()).upload(MultipartForm(), to: server.url)
            }
            #expect(error.code == .connectionLost)
            #expect(error.delivery == .responseLost)
            #expect(error.advice?.hasPrefix("The form may have arrived.") == true)
        }
        try await Responses.run([nil, ("503 Service Unavailable", [:])]) { server in
            let client = UploadClient(
                transport: carrier.transport(), retryPolicy: .withoutDelays(maximumAttempts: 2))
            let error = try await #require(throws: UploadError.self) {
                try await client.upload(MultipartForm(), to: server.url)
            }
            #expect(error.code == .refused)
            #expect(error.delivery == .responseLost)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a refusal is a refusal`(carrier: Carrier) async throws {
        try await Responses.run([("422 Unprocessable Content", [:])]) { server in
            let error = try await #require(throws: UploadError.self) {
                try await UploadClient(transport: carrier.transport()).upload(MultipartForm(), to: server.url)
            }
            #expect(error.delivery == .refused)
        }
    }

    @Test(arguments: Carrier.allCases, ["500 Internal Server Error", "502 Bad Gateway", "504 Gateway Timeout"])
    func `a form that was sent whole may have arrived if its response was lost`(
        carrier: Carrier, status: String
    ) async throws {
        try await Responses.run([(status, [:]), ("413 Content Too Large", [:])]) { server in
            let client = UploadClient(
                transport: carrier.transport(), retryPolicy: .withoutDelays(maximumAttempts: 2))
            let error = try await #require(throws: UploadError.self) {
                try await client.upload(MultipartForm(), to: server.url)
            }
            #expect(error.response?.status.code == 413)
            #expect(error.delivery == .responseLost)
            #expect(error.advice?.contains("The form may have arrived.") == true)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a server that fails before it has the whole form has none`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        var form = MultipartForm()
        form.append(fileAt: try folder.sparseFile("large.bin", size: 64 << 20), named: "file")
        let sent = form
        try await RawServer.run { connection in
            _ = try await connection.readHead()
            try await connection.respond("502 Bad Gateway", ["Connection": "close"])
            _ = try await connection.readToEnd()
        } while: { server in
            let error = try await #require(throws: UploadError.self) {
                try await UploadClient(transport: carrier.transport()).upload(sent, to: server.url)
            }
            #expect(error.response?.status.code == 502)
            #expect(error.delivery == .refused)
        }
    }

    /// Responds, and reports nothing.
    private struct Silent: UploadTransport {
        let status: Int

        func send(
            _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
        ) async throws -> UploadResponse {
            UploadResponse(status: .init(code: status), headerFields: HTTPFields(), body: Data())
        }
    }

    @Test(arguments: [500, 502, 504])
    func `a form counts as sent if the transport reports nothing`(status: Int) async throws {
        let url = try #require(URL(string: "http://example.org/"))
        let error = try await #require(throws: UploadError.self) {
            try await UploadClient(transport: Silent(status: status)).upload(MultipartForm(), to: url)
        }
        #expect(error.code == .refused)
        #expect(error.delivery == .responseLost)
    }
}
