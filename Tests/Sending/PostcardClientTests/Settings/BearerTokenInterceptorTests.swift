import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(10))) struct BearerTokenInterceptorTests {
    /// Gives numbered tokens, and counts.
    private final class Account: Sendable {
        private let tokens = Mutex(0)
        var count: Int { tokens.withLock { $0 } }

        func token() -> String {
            tokens.withLock { count in
                count += 1
                return "fresh-\(count)"
            }
        }
    }

    /// Serves uploads of one token, and refuses those of any other.
    private static func server<Result: Sendable>(
        taking token: String, while work: @escaping @Sendable (RawServer) async throws -> Result
    ) async throws -> Result {
        try await RawServer.run { connection in
            while let request = try await connection.readRequest() {
                let isKnown = request.head["Authorization"] == "Bearer \(token)"
                try await connection.respond(isKnown ? "201 Created" : "401 Unauthorized")
            }
        } while: {
            try await work($0)
        }
    }

    private static func client(_ carrier: Carrier, _ interceptor: BearerTokenInterceptor) -> UploadClient {
        var client = UploadClient(transport: carrier.transport())
        client.interceptors = [interceptor]
        return client
    }

    @Test(arguments: Carrier.allCases)
    func `one token is got for twenty uploads, and each is stored once`(carrier: Carrier) async throws {
        let account = Account()
        try await Self.server(taking: "fresh-1") { server in
            let refused = Mutex<[String?]>([])
            let client = Self.client(
                carrier,
                BearerTokenInterceptor(token: "expired") { token in
                    refused.withLock { $0.append(token) }
                    return account.token()
                })
            let attempts = try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 0..<20 {
                    group.addTask {
                        var form = MultipartForm()
                        form.append("\(number)", named: "number")
                        return try await client.upload(form, to: server.url).attempts
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(account.count == 1)
            #expect(refused.withLock { $0 } == ["expired"])
            #expect(attempts.allSatisfy { $0 <= 2 })
            let stored = server.requests.whole.filter { $0.head["Authorization"] == "Bearer fresh-1" }
            #expect(Set(stored.map(\.body)).count == 20)
            #expect(stored.count == 20)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `without a token the first upload gets one before anything is sent`(carrier: Carrier) async throws {
        let account = Account()
        try await Self.server(taking: "fresh-1") { server in
            let client = Self.client(carrier, BearerTokenInterceptor { _ in account.token() })
            for _ in 0..<3 { try await client.upload(MultipartForm(), to: server.url) }
            #expect(account.count == 1)
            #expect(server.requests.heads.count == 3)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a fresh token that is refused as well is the end`(carrier: Carrier) async throws {
        let account = Account()
        try await Self.server(taking: "another") { server in
            let client = Self.client(carrier, BearerTokenInterceptor(token: "expired") { _ in account.token() })
            let error = try await #require(throws: UploadError.self) {
                try await client.upload(MultipartForm(), to: server.url)
            }
            #expect(error.response?.status.code == 401)
            #expect(error.attempts == 2)
            #expect(account.count == 1)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `where no token is to be had, its error is that of all who wait`(carrier: Carrier) async throws {
        struct LoggedOut: Error {}
        try await Self.server(taking: "another") { server in
            let client = Self.client(carrier, BearerTokenInterceptor(token: "expired") { _ in throw LoggedOut() })
            await withDiscardingTaskGroup { group in
                for _ in 0..<5 {
                    group.addTask {
                        await #expect(throws: LoggedOut.self) {
                            try await client.upload(MultipartForm(), to: server.url)
                        }
                    }
                }
            }
        }
    }

    @Test func `a cancelled wait ends, and the last one cancels the refresh`() async throws {
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let (ended, end) = AsyncStream.makeStream(of: Bool.self)
        let interceptor = BearerTokenInterceptor { _ in
            begin.finish()
            let (never, _) = AsyncStream.makeStream(of: Void.self)
            for await _ in never {}
            end.yield(Task.isCancelled)
            throw CancellationError()
        }
        let client = Self.client(.asyncHTTP, interceptor)
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let uploads = (0..<3).map { _ in Task { try await client.upload(MultipartForm(), to: url) } }
        for await _ in begun {}
        for upload in uploads {
            upload.cancel()
            await #expect(throws: CancellationError.self) { try await upload.value }
        }
        #expect(await ended.first { _ in true } == true)
    }
}
