import Testing

@testable import PostcardReception
@testable import PostcardServer

struct ByteRangeTests {
    @Test(
        arguments: [
            ("bytes=0-0", 10, .part(0..<1)),
            ("bytes=2-5", 10, .part(2..<6)),
            ("bytes=2-", 10, .part(2..<10)),
            ("bytes=-3", 10, .part(7..<10)),
            ("bytes=-30", 10, .part(0..<10)),
            ("bytes=5-99999999999999999999", 10, .part(5..<10)),
            ("BYTES=5-6", 10, .part(5..<7)),
            ("bytes=10-", 10, .notSatisfiable),
            ("bytes=10-12", 10, .notSatisfiable),
            ("bytes=-0", 10, .notSatisfiable),
            ("bytes=0-", 0, .notSatisfiable),
            ("bytes=-5", 0, .notSatisfiable),
            ("bytes=5-2", 10, .whole),
            ("bytes=-", 10, .whole),
            ("bytes=a-b", 10, .whole),
            ("bytes=+1-2", 10, .whole),
            ("bytes=0-1,3-4", 10, .whole),
            ("items=0-1", 10, .whole),
            ("bytes", 10, .whole),
            ("", 10, .whole),
        ] as [(String, Int64, ByteRange)])
    func `a Range field means one part of a file, or the whole file`(value: String, size: Int64, expected: ByteRange) {
        #expect(ByteRange(value, size: size) == expected)
    }
}
