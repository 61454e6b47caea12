import Crypto
import Foundation
import PostcardForm
import Testing

@testable import PostcardClient

@Suite struct ContentDigestsTests {
    private static let contents = [Data("초코".utf8), Data(), Data(0..<200), Data(repeating: 9, count: 30)]

    private static func body() throws -> (UploadBody, ContentDigests) {
        var form = MultipartForm(boundary: try Boundary("XX"))
        form.append("초코", named: "name")
        form.append(Data(), named: "empty", filename: "empty.bin")
        form.append(contents[2], named: "bytes", filename: "a.bin")
        form.append(contents[3], named: "last", filename: "b.bin")
        let layout = try form.layout()
        let digests = ContentDigests(of: layout.parts)
        return (UploadBody(layout, rateLimit: nil, digests: digests), digests)
    }

    /// Reads some bytes, as a transport that is cut off does.
    private static func read(_ count: Int, of reader: UploadBodyReader) throws {
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
        let (body, digests) = try Self.body()
        #expect(digests.sentParts == nil)
        let reader = try body.reader()
        var buffer = [UInt8](repeating: 0, count: size)
        while try buffer.withUnsafeMutableBytes({ try reader.read(into: $0) }) > 0 {}
        try Self.expectAll(digests)
    }

    @Test func `a retry starts over, wherever the first attempt broke off`() throws {
        let (body, digests) = try Self.body()
        let length = Int(body.contentLength ?? 0)
        for count in stride(from: 0, to: length, by: 7) {
            try Self.read(count, of: try body.reader())
            try Self.read(length, of: try body.reader())
            try Self.expectAll(digests)
        }
    }

    @Test func `a reader from an offset continues where the last one stopped, even if it repeats some bytes`()
        async throws
    {
        let (body, digests) = try Self.body()
        let length = Int(body.contentLength ?? 0)
        for count in stride(from: 1, to: length, by: 11) {
            for overlap in [0, 1, 40, count - 1] where overlap < count {
                try Self.read(count, of: try body.reader())
                let rest = try body.slice(Int64(count - overlap)..<Int64(length)).reader()
                try Self.read(length - count + overlap, of: rest)
                try Self.expectAll(digests)
            }
        }
    }

    @Test func `skipped bytes leave the digests unknown`() throws {
        let (body, digests) = try Self.body()
        let range = try #require(
            {
                let reader = try body.reader()
                try Self.read(Int(body.contentLength ?? 0), of: reader)
                return body.contentRanges[2]
            }())
        try Self.read(Int(range.lowerBound) + 20, of: try body.reader())
        let length = Int(body.contentLength ?? 0)
        try Self.read(
            length - Int(range.lowerBound) - 30, of: try body.slice(range.lowerBound + 30..<Int64(length)).reader())
        #expect(digests.sentParts == nil)
    }

    @Test func `bytes of an earlier reader do not count`() throws {
        let (body, digests) = try Self.body()
        let length = Int(body.contentLength ?? 0)
        let stale = try body.reader()
        try Self.read(10, of: stale)
        let reader = try body.reader()
        try Self.read(150, of: reader)
        try Self.read(length - 10, of: stale)
        #expect(digests.sentParts == nil)
        try Self.read(length - 150, of: reader)
        try Self.expectAll(digests)
    }
}
