import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Synchronization
import Testing

/// Uploads to `postcard serve` through a proxy that redirects, or asks for a token.
@Suite(.timeLimit(.minutes(10))) struct DetourTests {
    /// On Linux all sessions of URLSession share a queue, on which the forms of other tests may wait for their streams.
    /// A busy machine needs more than the idle timeout until a connection is made.
    private static func client(_ carrier: Carrier, retryPolicy: RetryPolicy = .never) -> UploadClient {
        UploadClient(
            transport: carrier.transport(), retryPolicy: retryPolicy, timeouts: UploadTimeouts(connect: .seconds(300)))
    }

    private static func pointing(_ status: Int, to place: String) -> Fault {
        .response(Fault.Response(status, ["Location": place]))
    }

    /// Redirects of a form that is sent again, when its whole body has come and before.
    static let repeated = [307, 308].flatMap { status in
        let response = Fault.Response(status, ["Location": "/uploads?again"])
        return [Fault.response(response), .earlyResponse(response, atByte: 100_000, .reading)]
    }

    @Test(arguments: Carrier.allCases, repeated)
    func `a redirected form is stored at the other place, once`(carrier: Carrier, redirect: Fault) async throws {
        let folder = try TemporaryFolder()
        let form = try FaultTests.form(in: folder, size: FaultTests.large)
        let receiver = try await ReceivingServer()
        let proxy = try await FaultProxy.run([redirect], before: receiver.url) { proxy in
            let response = try await Self.client(carrier).upload(form, to: proxy.uploads)
            #expect(response.status == .created)
            return proxy
        }
        #expect(proxy.seen.map(\.method) == ["POST", "POST"])
        #expect(proxy.seen.map(\.path) == ["/uploads", "/uploads?again"])
        try proxy.expectNothingOpen(in: folder)
        #expect(try await receiver.end().records.count == 1)
    }

    @Test(arguments: Carrier.allCases)
    func `after a 303 the other place is requested without the form`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let form = try FaultTests.form(in: folder, size: 300_000)
        let receiver = try await ReceivingServer()
        let proxy = try await FaultProxy.run([Self.pointing(303, to: "/health")], before: receiver.url) { proxy in
            let response = try await Self.client(carrier).upload(form, to: proxy.uploads)
            #expect(response.text == "ok")
            return proxy
        }
        #expect(proxy.seen.map(\.method) == ["POST", "GET"])
        try proxy.expectNothingOpen(in: folder)
        #expect(try await receiver.end().isEmpty)
    }

    @Test(arguments: Carrier.allCases, [301, 302])
    func `a redirect that could lose the form is a refusal`(carrier: Carrier, status: Int) async throws {
        let folder = try TemporaryFolder()
        let form = try FaultTests.form(in: folder, size: 300_000)
        let receiver = try await ReceivingServer()
        let proxy = try await FaultProxy.run([Self.pointing(status, to: "/uploads")], before: receiver.url) { proxy in
            let client = Self.client(carrier, retryPolicy: .withoutDelays(maximumAttempts: 3))
            let error = try await #require(throws: UploadError.self) {
                try await client.upload(form, to: proxy.uploads)
            }
            #expect(error.code == .refused)
            #expect(error.response?.status.code == status)
            return proxy
        }
        #expect(proxy.seen.count == 1)
        try proxy.expectNothingOpen(in: folder)
        #expect(try await receiver.end().isEmpty)
    }

    @Test(arguments: Carrier.allCases)
    func `twenty uploads that need a token share one refresh, and each is stored once`(
        carrier: Carrier
    ) async throws {
        let folder = try TemporaryFolder()
        let form = try FaultTests.form(in: folder, size: 300_000)
        let receiver = try await ReceivingServer()
        let refreshes = Mutex(0)
        let proxy = try await FaultProxy.run(before: receiver.url) { request in
            request["Authorization"] == "Bearer fresh" ? .none : .response(Fault.Response(401))
        } while: { proxy in
            var client = Self.client(carrier)
            client.interceptors = [
                BearerTokenInterceptor(token: "expired") { _ in
                    refreshes.withLock { $0 += 1 }
                    return "fresh"
                }
            ]
            try await withThrowingTaskGroup(of: UploadResponse.self) { [client] group in
                for _ in 0..<20 {
                    group.addTask { try await client.upload(form, to: proxy.uploads) }
                }
                while let response = try await group.next() { #expect(response.status == .created) }
            }
            return proxy
        }
        #expect(refreshes.withLock { $0 } == 1)
        #expect(proxy.seen.count { $0["Authorization"] == "Bearer fresh" } == 20)
        try proxy.expectNothingOpen(in: folder)
        #expect(try await receiver.end().records.count == 20)
    }
}
