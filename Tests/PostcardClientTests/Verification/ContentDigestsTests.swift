import Crypto
import Foundation
import PostcardForm
import Testing

@testable import PostcardClient

@Suite struct ContentDigestsTests {
    private static let contents = [Data("초코".utf8), Data(), Data(0..<200), Data(repeating: 9, count: 30)]

    private static func layout() throws -> (FormLayout, ContentDigests) {
        var form = MultipartForm(boundary: try Boundary("XX"))
        form.append("초코", named: "name")
        form.append(Data(), named: "empty", filename: "empty.bin")
        form.append(contents[2], named: "bytes", filename: "a.bin")
        form.append(contents[3], named: "last", filename: "b.bin")
        var layout = try form.layout()
        let digests = ContentDigests(of: layout.parts)
        layout.observer = digests
        return (layout, digests)
    }

    /// Reads some bytes, as a transport that is cut off does.
    private static func read(_ count: Int, of reader: FormReader) throws {
        var buffer = [UInt8](repeating: 0, count: count)
        #expect(try buffer.withUnsafeMutableBytes { try reader.read(into: $0) } == count)
    }

    private static func expectAll(_ digests: ContentDigests) throws {
        let parts = try #require(digests.sentParts)
        #expect(parts.map(\.index) == [0, 1, 2, 3])
        #expect(parts.map(\.name) == ["name", "empty", "bytes", "last"])
        #expect(parts.map(\.filename) == [nil, "empty.bin", "a.bin", "b.bin"])
        #expect(parts.map(\.size) == contents.map { Int64($0.count) })
        let expected = contents.map { content in
            SHA256.hash(data: content).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        }
        #expect(parts.map(\.sha256) == expected)
    }

    @Test(arguments: [1, 10, 1_000])
    func `every part has the digest of its content, empty ones too`(size: Int) async throws {
        let (layout, digests) = try Self.layout()
        #expect(digests.sentParts == nil)
        let reader = try layout.reader()
        var buffer = [UInt8](repeating: 0, count: size)
        while try buffer.withUnsafeMutableBytes({ try reader.read(into: $0) }) > 0 {}
        try Self.expectAll(digests)
    }

    @Test func `a retry begins anew, wherever the first attempt broke off`() async throws {
        let (layout, digests) = try Self.layout()
        for count in stride(from: 0, to: Int(layout.contentLength ?? 0), by: 7) {
            try Self.read(count, of: try layout.reader())
            _ = try await layout.bytes()
            try Self.expectAll(digests)
        }
    }

    @Test func `a reader from an offset goes on where the last one stopped, though it gives some bytes again`()
        async throws
    {
        let (layout, digests) = try Self.layout()
        let length = Int(layout.contentLength ?? 0)
        for count in stride(from: 1, to: length, by: 11) {
            for overlap in [0, 1, 40, count - 1] where overlap < count {
                try Self.read(count, of: try layout.reader())
                let rest = try layout.reader(from: Int64(count - overlap))
                try Self.read(length - count + overlap, of: rest)
                try Self.expectAll(digests)
            }
        }
    }

    @Test func `bytes that no reader gave leave the digests unknown`() throws {
        let (layout, digests) = try Self.layout()
        let range = try #require(
            {
                let reader = try layout.reader()
                try Self.read(Int(layout.contentLength ?? 0), of: reader)
                return reader.contentRanges[2]
            }())
        try Self.read(Int(range.lowerBound) + 20, of: try layout.reader())
        let length = Int(layout.contentLength ?? 0)
        try Self.read(length - Int(range.lowerBound) - 30, of: try layout.reader(from: range.lowerBound + 30))
        #expect(digests.sentParts == nil)
    }

    @Test func `what a reader that was given up still hands out does not count`() throws {
        let (layout, digests) = try Self.layout()
        let length = Int(layout.contentLength ?? 0)
        let stale = try layout.reader()
        try Self.read(10, of: stale)
        let reader = try layout.reader()
        try Self.read(150, of: reader)
        try Self.read(length - 10, of: stale)
        #expect(digests.sentParts == nil)
        try Self.read(length - 150, of: reader)
        try Self.expectAll(digests)
    }
}
