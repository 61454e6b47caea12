import Foundation
import PostcardForm
import PostcardTestSupport
import Testing

@testable import PostcardClient

@Suite(.timeLimit(.minutes(10))) struct UploadBodyTests {
    private static func layout(in folder: TemporaryFolder, streamLength: Int64? = nil) throws -> FormLayout {
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append("", named: "empty")
        form.append(fileAt: try folder.file("a.bin", Array(0...255)), named: "file")
        let stream = FormStream(length: streamLength) {
            AsyncStream { continuation in
                for number in UInt8(0)..<5 { continuation.yield(Data(repeating: number, count: 30)) }
                continuation.finish()
            }
        }
        form.append(stream, named: "log", filename: "log.txt")
        form.append(Data([7]), named: "last", filename: "last")
        return try form.layout()
    }

    private static func read(_ body: UploadBody, by size: Int) async throws -> [UInt8] {
        let reader = try body.reader()
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: size)
        while try await reader.prepare() {
            #expect(!reader.needsPreparation)
            let count = try buffer.withUnsafeMutableBytes { try reader.read(into: $0) }
            bytes += buffer[..<count]
        }
        #expect(reader.isAtEnd && !reader.needsPreparation)
        return bytes
    }

    @Test(arguments: [1, 7, 1_000], [nil, 150] as [Int64?])
    func `a rate limit changes no byte, and a reader waits for every burst`(size: Int, length: Int64?) async throws {
        let folder = try TemporaryFolder()
        let layout = try Self.layout(in: folder, streamLength: length)
        let expected = try await layout.data()
        let clock = ManualClock()
        let limit = RateLimit(bytesPerSecond: 200, clock: clock)
        #expect(Data(try await Self.read(UploadBody(layout, rateLimit: limit), by: size)) == expected)
        // Bursts of 10 bytes, the first two of which need no wait.
        let seconds = clock.now.sinceStart / .seconds(1)
        #expect(abs(seconds - Double(expected.count) / 200) <= 0.1)
    }

    @Test func `a reader that the limit ends fails for good`() async throws {
        let folder = try TemporaryFolder()
        let body = UploadBody(
            try Self.layout(in: folder), rateLimit: RateLimit(bytesPerSecond: 1, clock: ManualClock()))
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            let reader = try body.reader()
            for _ in 0..<2 {
                await #expect(throws: CancellationError.self) { try await reader.prepare() }
                var byte: UInt8 = 0
                #expect(try withUnsafeMutableBytes(of: &byte) { try reader.read(into: $0) } == 0)
            }
        }
        try await task.value
    }

    @Test(arguments: [1, 13, 1_000])
    func `the length and the places of parts are known after reading, if not before`(size: Int) async throws {
        let folder = try TemporaryFolder()
        let known = UploadBody(try Self.layout(in: folder, streamLength: 150))
        let unknown = UploadBody(try Self.layout(in: folder))
        #expect(known.knownLength != nil && unknown.knownLength == nil)
        let bytes = try await Self.read(unknown, by: size)
        #expect(unknown.knownLength == Int64(bytes.count))
        #expect(known.contentRanges.map(\.count) == [6, 0, 256, 150, 1])
        #expect(unknown.contentRanges.map(\.count) == [6, 0, 256, 150, 1])
        for (range, first) in zip(unknown.contentRanges, [nil, nil, 0, 0, 7] as [UInt8?]) {
            if let first { #expect(bytes[Int(range.lowerBound)] == first) }
        }
    }

    @Test func `digests include what an earlier process has sent, without waiting for the limit`() async throws {
        let folder = try TemporaryFolder()
        let layout = try Self.layout(in: folder, streamLength: 150)
        let length = try #require(layout.contentLength)
        let whole = UploadBody(layout, rateLimit: nil, digests: ContentDigests(of: layout.parts))
        _ = try await Self.read(whole, by: 1_000)
        for offset in stride(from: 0, to: length, by: 50) {
            let clock = ManualClock()
            let body = UploadBody(
                layout, rateLimit: RateLimit(bytesPerSecond: 20, clock: clock),
                digests: ContentDigests(of: layout.parts))
            try await body.digest(first: offset)
            #expect(clock.now.sinceStart == .zero)
            _ = try await Self.read(body.slice(offset..<length), by: 100)
            #expect(body.digests?.sentParts != nil)
            #expect(body.digests?.sentParts == whole.digests?.sentParts)
        }
    }
}
