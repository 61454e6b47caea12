import NIOCore
import Testing

@testable import PostcardReceiver

struct ThumbnailCacheTests {
    @Test func `the thumbnails that were used last are kept, within the limit`() {
        let cache = ThumbnailCache(maximumBytes: 10_000)
        for number in 0..<100 {
            cache.add(.picture(ByteBuffer(repeating: 0, count: 1000)), for: "\(number)")
            #expect(cache.bytes <= 10_000)
            // This one is always in use.
            guard case .picture? = cache["0"] else {
                Issue.record("The first was removed when \(number) was added.")
                return
            }
        }
        #expect(cache["1"] == nil && cache["99"] != nil)
    }

    @Test func `a file without a thumbnail is remembered, and counts once`() {
        let cache = ThumbnailCache(maximumBytes: 10_000)
        for _ in 0..<3 { cache.add(.none, for: "text") }
        guard case .none? = cache["text"] else {
            Issue.record("It was forgotten.")
            return
        }
        #expect(cache.bytes < 1000)
    }
}
