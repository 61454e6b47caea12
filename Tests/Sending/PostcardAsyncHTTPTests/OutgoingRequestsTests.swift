import NIOHTTP1
import Testing

@testable import PostcardAsyncHTTP

@Suite struct OutgoingRequestsTests {
    private static func marking(removing isRemoved: Bool) -> (OutgoingRequests.Marking, HTTPHeaders) {
        let requests = OutgoingRequests()
        let body = OutgoingBody(blocks: BodyBlocks(), length: 7, expectsContinue: false) { _ in }
        var headers: HTTPHeaders = ["Accept": "*/*"]
        let request = OutgoingRequest(body: body, report: { _ in }, beginning: RequestBeginning())
        let number = requests.add(request, marking: &headers)
        if isRemoved { requests.remove(number) }
        return (requests.takeRequest(from: &headers), headers)
    }

    @Test func `a body is found by the header of its request, which then has no mark`() {
        let (marking, headers) = Self.marking(removing: false)
        guard case .request(let request) = marking else {
            Issue.record("The request was not found.")
            return
        }
        #expect(request.body?.length == 7)
        #expect(headers == ["Accept": "*/*"])
    }

    @Test func `the body of a cancelled request is not taken for none, as an empty form would be sent`() {
        guard case .removed = Self.marking(removing: true).0 else {
            Issue.record("The request would be sent without its body.")
            return
        }
    }

    @Test func `a request that is not the transport's has no mark`() {
        var headers: HTTPHeaders = ["Accept": "*/*"]
        guard case .none = OutgoingRequests().takeRequest(from: &headers) else {
            Issue.record("There is a mark.")
            return
        }
    }
}
