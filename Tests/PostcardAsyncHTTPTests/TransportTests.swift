import AsyncHTTPClient
import Foundation
import NIOCore
import PostcardAsyncHTTP
import PostcardClient
import PostcardForm
import Testing

@Suite struct TransportTests {
    @Test func `a client that the program has is used, and left to the program`() async throws {
        var configuration = HTTPClient.Configuration()
        configuration.connectionPool.retryConnectionEstablishment = false
        try await HTTPClient.withHTTPClient(configuration: configuration) { client in
            let url = try #require(URL(string: "http://no-such-host.invalid/"))
            for _ in 0..<2 {
                let error = try await #require(throws: UploadError.self) {
                    try await UploadClient(transport: AsyncHTTPTransport(client: client)).upload(
                        MultipartForm(), to: url)
                }
                #expect(error.code == .connectionFailed)
            }
        }
    }
}
