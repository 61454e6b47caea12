import PostcardDoctor
import PostcardForm
import Testing

/// Whoever is sent a bad request may be sent one that was made to keep the reader busy.
@Suite(.timeLimit(.minutes(10))) struct HostileShapeTests {
    /// Longer than a block, so that what is kept between two of them is read too.
    private static let sizes = [66_000, 132_000]
    /// Each reader looks at a byte a few times: to find delimiters, lines, fields and problems.
    private static let stepsPerByte = 60

    #if DEBUG
    @Test(arguments: HostileShape.all)
    func `twice the input takes at most twice the steps`(shape: HostileShape) throws {
        let steps = Self.sizes.map { size in
            StepCount.of { Self.explain(shape.bytes(size)) }
        }
        for (size, count) in zip(Self.sizes, steps) {
            #expect(count <= Self.stepsPerByte * size, "\(steps)")
        }
        for (before, after) in zip(steps, steps.dropFirst()) {
            // A few hundred kilobytes may be read twice: a delimiter that does not end, until it is too long.
            #expect(Double(after) <= 2.2 * Double(before) + 500_000, "\(steps)")
        }
    }
    #endif

    @Test func `there are at least forty shapes`() {
        #expect(HostileShape.all.count >= 40)
        #expect(Set(HostileShape.all.map(\.name)).count == HostileShape.all.count)
    }

    @Test(arguments: [70, 71, 30_000, 60_000])
    func `a boundary may be longer than what is read ahead`(length: Int) throws {
        let boundary = String(repeating: "a", count: length)
        let head = "POST / HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=\(boundary)\r\n\r\n"
        for byte in ["a", "-"] as [Character] {
            var input = InputExamination()
            let bytes = (Array(head.utf8) + Array(String(repeating: byte, count: 300_000).utf8))[...]
            try input.read(bytes.span.bytes)
            let explanation = try input.finish()
            #expect(!explanation.isWellFormed)
        }
    }

    /// Reads an input, and fixes what can be fixed. An input without a request is an answer too.
    private static func explain(_ bytes: [UInt8]) {
        var input = InputExamination()
        let whole = bytes[...]
        do throws(InputError) {
            for start in stride(from: 0, to: whole.count, by: 64 << 10) {
                try input.read(whole.span.bytes.extracting(start..<min(start + 64 << 10, whole.count)))
            }
            let explanation = try input.finish()
            guard input.format == .request else { return }
            var fixer = RequestFixer(explanation)
            fixer.read(whole.span.bytes) { _ in }
            fixer.finish { _ in }
        } catch {}
    }
}
