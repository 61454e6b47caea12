import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Synchronization
import Testing

/// Servers that contradict themselves about how much of a form they received.
@Suite(.timeLimit(.minutes(10))) struct ContradictionTests {
    /// A server that reports a wrong offset, with its reaction to each append.
    private final class Liar: Sendable {
        enum Append: Sendable {
            case conflict
            case cut
            case gone
        }

        private let state = Mutex((offset: 0, appends: 0))
        private let append: @Sendable (Int) -> Append

        private let step: Int

        /// - Parameters:
        ///   - step: How many bytes more every response to an append reports.
        ///   - append: The reaction to an append, given the number of earlier ones.
        init(step: Int = 1, _ append: @escaping @Sendable (Int) -> Append) {
            self.step = step
            self.append = append
        }

        var appends: Int { state.withLock { $0.appends } }

        /// Serves one connection. Every response to an append reports more bytes.
        func serve(_ connection: RawConnection) async throws {
            while let request = try await connection.readRequest() {
                switch request.method {
                case "OPTIONS": try await connection.respond("204 No Content", ["Upload-Limit": "min-size=0"])
                case "POST": try await connection.respond("201 Created", ["Location": "/uploads/a"])
                case "HEAD":
                    let offset = state.withLock { $0.offset }
                    try await connection.respond(
                        "204 No Content", ["Upload-Offset": "\(offset)", "Upload-Complete": "?0"])
                case "DELETE": try await connection.respond("204 No Content")
                default:
                    let (offset, number) = state.withLock { state in
                        state.offset += step
                        state.appends += 1
                        return (state.offset, state.appends - 1)
                    }
                    switch append(number) {
                    case .conflict:
                        try await connection.respond(
                            "409 Conflict", ["Upload-Offset": "\(offset)", "Upload-Complete": "?0"])
                    case .gone: try await connection.respond("404 Not Found")
                    case .cut: return
                    }
                }
            }
        }

        /// Uploads a form to the server, which fails.
        func error(_ carrier: Carrier, _ folder: TemporaryFolder) async throws -> UploadError {
            var form = MultipartForm()
            form.append(fileAt: try folder.file("a.jpg", size: 10_000), named: "image")
            let sent = form
            return try await RawServer.run { connection in
                try await self.serve(connection)
            } while: { server in
                try await #require(throws: UploadError.self) {
                    try await ResumptionTests.client(carrier).upload(sent, to: server.url)
                }
            }
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a server that has more bytes than the form is not believed`(carrier: Carrier) async throws {
        let server = Liar(step: 1_000_000) { _ in .conflict }
        let error = try await server.error(carrier, try TemporaryFolder())
        #expect(error.code == .refused)
        #expect(error.message.contains("says that it has 1000000 bytes of the form, which has only "), "\(error)")
        #expect(server.appends == 1)
    }

    @Test(arguments: Carrier.allCases)
    func `an offset that is always too far ends the upload, however far it comes`(carrier: Carrier) async throws {
        let server = Liar(step: 200) { $0 == 0 ? .cut : .conflict }
        let error = try await server.error(carrier, try TemporaryFolder())
        #expect(error.code == .refused && error.response?.status.code == 409)
        #expect(error.message.hasSuffix("It has rejected the bytes that it asked for 5 times in a row."), "\(error)")
        #expect(server.appends == 6)
    }

    @Test(arguments: Carrier.allCases)
    func `an offset that grows by a byte with each attempt forgives no failure`(carrier: Carrier) async throws {
        let server = Liar { $0 == 0 ? .cut : .conflict }
        let error = try await server.error(carrier, try TemporaryFolder())
        #expect(error.code == .refused && error.response?.status.code == 409)
        #expect(server.appends == 5)
    }

    @Test(arguments: Carrier.allCases)
    func `a server that loses every upload at once is given up`(carrier: Carrier) async throws {
        let server = Liar { _ in .gone }
        let error = try await server.error(carrier, try TemporaryFolder())
        #expect(error.code == .refused && error.response?.status.code == 404)
        #expect(server.appends == 5)
    }
}
