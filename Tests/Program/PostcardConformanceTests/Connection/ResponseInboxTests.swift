import NIOCore
import NIOPosix
import Testing

@testable import PostcardConformance

@Suite(.timeLimit(.minutes(5))) struct ResponseInboxTests {
    private let inbox = ResponseInbox()
    private let loop = MultiThreadedEventLoopGroup.singleton.any()
    private let far = ContinuousClock.now + .seconds(300)

    @Test func `interim responses without end are a failure`() async throws {
        for _ in 0...ResponseInbox.maximumResponses { inbox.receive("HTTP/1.1 104 -\r\n\r\n".utf8) }
        #expect(!inbox.isOpen)
        for _ in 0..<ResponseInbox.maximumResponses {
            #expect(try await inbox.next(before: far, on: loop)?.status == 104)
        }
        await #expect(throws: ConnectionFailure.tooMany) { try await inbox.next(before: far, on: loop) }
    }

    /// A large response.
    enum Large: CaseIterable, Sendable {
        case content
        case longField
        case manyFields

        var text: String {
            switch self {
            case .content:
                "HTTP/1.1 200 -\r\nContent-Length: 1000000\r\n\r\n" + String(repeating: "x", count: 1_000_000)
            case .longField: "HTTP/1.1 104 -\r\nA: " + String(repeating: "x", count: 60_000) + "\r\n\r\n"
            case .manyFields: "HTTP/1.1 104 -\r\n" + String(repeating: "A:\r\n", count: 10_000) + "\r\n"
            }
        }
    }

    @Test(arguments: Large.allCases)
    func `unread responses have a limit in bytes`(response: Large) async throws {
        let text = response.text
        var count = 0
        while inbox.isOpen, count < ResponseInbox.maximumResponses {
            inbox.receive(text.utf8)
            count += 1
        }
        #expect(!inbox.isOpen)
        #expect((2...600).contains(count))
        for _ in 1..<count { #expect(try await inbox.next(before: far, on: loop)?.status != nil) }
        await #expect(throws: ConnectionFailure.tooManyBytes) { try await inbox.next(before: far, on: loop) }
    }

    @Test func `read responses do not count`() async throws {
        let text = Large.content.text
        for _ in 0..<40 {
            inbox.receive(text.utf8)
            #expect(try await inbox.next(before: far, on: loop)?.body.count == 1_000_000)
        }
        #expect(inbox.isOpen)
    }

    @Test func `a response is passed to the task that waits for it`() async throws {
        async let response = inbox.next(before: far, on: loop)
        try await loop.submit { [inbox] in inbox.receive("HTTP/1.1 204 -\r\n\r\n".utf8) }.get()
        #expect(try await response?.status == 204)
    }

    @Test func `a wait ends at its deadline, and with its task`() async throws {
        #expect(try await inbox.next(before: .now + .milliseconds(1), on: loop)?.status == nil)
        let task = Task { [inbox, far, loop] in try await inbox.next(before: far, on: loop)?.status }
        task.cancel()
        #expect(try await task.value == nil)
    }

    @Test func `the end of the connection ends a wait, after the last response`() async throws {
        inbox.receive("HTTP/1.1 200 -\r\n\r\nabc".utf8)
        async let isEnded = inbox.waitForEnd(before: far, on: loop)
        inbox.end()
        #expect(await isEnded)
        await #expect(throws: ConnectionFailure.closed) { try await inbox.next(before: far, on: loop) }
    }
}
