import Foundation
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(10))) struct ProgressPropertyTests {
    /// A form of any shape, and the size of each part's content.
    ///
    /// - Parameter largest: The most bytes of one part.
    private static func form(
        _ chance: inout SeededGenerator, in folder: TemporaryFolder, largest: Int
    ) throws -> (form: MultipartForm, sizes: [Int64]) {
        var form = MultipartForm()
        var sizes: [Int64] = []
        for number in 0..<Int.random(in: 0...8, using: &chance) {
            let size =
                [0, 1, Int.random(in: 2...300, using: &chance), Int.random(in: 300...largest, using: &chance)]
                .randomElement(using: &chance) ?? 0
            switch Int.random(in: 0..<5, using: &chance) {
            case 0: form.append(String(repeating: "a", count: size), named: "text")
            case 1: form.append(Data(count: size), named: "bytes", filename: "bytes.bin")
            case 2: form.append(fileAt: try folder.file("\(number).bin", size: size), named: "file")
            case let kind:
                // Some streams say how long they are, some have chunks without bytes.
                let chunk = Int.random(in: (size / 100 + 1)...max(size, 1), using: &chance)
                let length = kind == 3 ? nil : Int64(size)
                form.append(
                    FormStream(length: length) {
                        AsyncStream { continuation in
                            continuation.yield(Data())
                            for begin in stride(from: 0, to: size, by: chunk) {
                                continuation.yield(Data(count: min(chunk, size - begin)))
                            }
                            continuation.finish()
                        }
                    }, named: "stream", filename: "stream.bin")
            }
            sizes.append(Int64(size))
        }
        return (form, sizes)
    }

    /// Checks the reported steps of a form whose parts have these sizes.
    private static func check(_ steps: [UploadProgress], sizes: [Int64], content: [Range<Int64>]) {
        var earlier = [Int64](repeating: 0, count: sizes.count)
        var bytesSent: Int64 = -1
        for step in steps {
            let parts = step.parts
            // The parts' bytes are all the bytes of the body that are within some part's content.
            let expected = content.reduce(0) { $0 + min(max(step.bytesSent - $1.lowerBound, 0), Int64($1.count)) }
            #expect(parts.reduce(0) { $0 + $1.bytesSent } == expected)
            #expect(zip(parts, earlier).allSatisfy { $0.bytesSent >= $1 })
            #expect(zip(parts, sizes).allSatisfy { $0.bytesSent <= $1 && $0.totalBytes ?? $1 == $1 })
            #expect(parts.allSatisfy { (0...1).contains($0.fraction ?? 0) } && (0...1).contains(step.fraction ?? 0))
            #expect(step.bytesSent >= bytesSent)
            earlier = parts.map(\.bytesSent)
            bytesSent = step.bytesSent
        }
        #expect(earlier == sizes)
        #expect(steps.last?.parts.allSatisfy { $0.fraction == 1 } == true)
        #expect(steps.last?.fraction == 1)
        #expect(steps.last?.timeRemaining == .zero)
    }

    @Test(arguments: 0..<60 as Range<UInt64>)
    func `the parts' bytes add up at every step, never fall, and end at each part's size`(seed: UInt64) async throws {
        let folder = try TemporaryFolder()
        var chance = SeededGenerator(seed: seed)
        let largest = [3, 700, 100_000].randomElement(using: &chance) ?? 3
        let (form, sizes) = try Self.form(&chance, in: folder, largest: max(largest * 2, 400))
        let reader = try form.layout().reader()
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while try await reader.prepare() { _ = try buffer.withUnsafeMutableBytes { try reader.read(into: $0) } }
        let chunks = Mutex(chance)
        var client = UploadClient(
            transport: Scripted { chunks.withLock { Int.random(in: 1...largest, using: &$0) } })
        client.reporting.progressInterval =
            [.zero, .milliseconds(1), .seconds(60)].randomElement(using: &chance) ?? .zero
        let journal = ProgressTests.Journal()
        let url = try #require(URL(string: "http://example.org/"))
        try await client.upload(form, to: url, progress: journal.note)
        Self.check(journal.all, sizes: sizes, content: reader.contentRanges)
    }

    @Test(arguments: Carrier.allCases, 100..<110 as Range<UInt64>)
    func `they do over a real connection too`(carrier: Carrier, seed: UInt64) async throws {
        let folder = try TemporaryFolder()
        var chance = SeededGenerator(seed: seed)
        let (form, sizes) = try Self.form(&chance, in: folder, largest: 200_000)
        let reader = try form.layout().reader()
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while try await reader.prepare() { _ = try buffer.withUnsafeMutableBytes { try reader.read(into: $0) } }
        let journal = ProgressTests.Journal()
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.respond("201 Created")
        } while: { server in
            var client = UploadClient(transport: carrier.transport())
            client.reporting.progressInterval = .zero
            try await client.upload(form, to: server.url, progress: journal.note)
        }
        Self.check(journal.all, sizes: sizes, content: reader.contentRanges)
    }
}
