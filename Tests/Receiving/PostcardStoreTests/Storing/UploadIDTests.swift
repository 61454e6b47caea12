import Testing

@testable import PostcardStore

struct UploadIDTests {
    @Test(arguments: [
        "", "x", "../../../../../../etc/passwd", "0123456789abcdefghjkmnpqr", "0123456789abcdefghjkmnpqrs0",
        "0123456789ABCDEFGHJKMNPQRS", "0123456789abcdefghijklmnop", "01234567/9abcdefghjkmnpqrs",
    ])
    func `what is no identifier is taken for none`(text: String) {
        #expect(UploadID(text) == nil)
    }

    @Test
    func `an identifier holds its time, and sorts by it`() throws {
        var generator = SystemRandomNumberGenerator()
        let times: [Int64] = [0, 1, 1_795_176_000_000, 1_795_176_000_001, (1 << 48) - 1]
        let ids = times.map { UploadID(milliseconds: $0, using: &generator) }
        #expect(ids.map(\.milliseconds) == times)
        #expect(ids == ids.sorted())
        #expect(ids.map { UploadID($0.text) } == ids)
    }

    @Test
    func `a source continues after its store's newest identifier, even if the clock was set back`() {
        var generator = SystemRandomNumberGenerator()
        let newest = UploadID(milliseconds: 1000, using: &generator)
        let source = UploadIDSource(after: [newest])
        let ids = [source.next(now: 5), source.next(now: 5), source.next(now: 2000)]
        #expect(ids.map(\.milliseconds) == [1001, 1002, 2000])
    }

    @Test func `an identifier of an impossible time, which someone put there, does not change the order`() throws {
        let planted = try #require(UploadID("zzzzzzzzzz0000000000000000"))
        let newest = try #require(UploadID("0000000zz00000000000000000"))
        let source = UploadIDSource(after: [planted, newest])
        let ids = (0..<3).map { _ in source.next(now: 5) }
        #expect(ids == ids.sorted())
        #expect(ids.allSatisfy { newest < $0 && $0 < planted })
    }
}
