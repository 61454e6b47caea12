import NIOHTTP1
import Testing

@testable import PostcardAsyncHTTP

@Suite struct OutgoingBodiesTests {
    private static func marking(removing isRemoved: Bool) -> (OutgoingBodies.Marking, HTTPHeaders) {
        let bodies = OutgoingBodies()
        let body = OutgoingBody(blocks: BodyBlocks(), length: 7, expectsContinue: false) { _ in }
        var headers: HTTPHeaders = ["Accept": "*/*"]
        let number = bodies.add(body, marking: &headers)
        if isRemoved { bodies.remove(number) }
        return (bodies.takeBody(from: &headers), headers)
    }

    @Test func `a body is found by the header of its request, which then has no mark`() {
        let (marking, headers) = Self.marking(removing: false)
        guard case .body(let body) = marking else {
            Issue.record("The body was not found.")
            return
        }
        #expect(body.length == 7)
        #expect(headers == ["Accept": "*/*"])
    }

    @Test func `the body of a cancelled request is not taken for none, as an empty form would be sent`() {
        guard case .removed = Self.marking(removing: true).0 else {
            Issue.record("The request would be sent without its body.")
            return
        }
    }

    @Test func `a request without a body has no mark`() {
        var headers: HTTPHeaders = ["Accept": "*/*"]
        guard case .none = OutgoingBodies().takeBody(from: &headers) else {
            Issue.record("There is a mark.")
            return
        }
    }
}
