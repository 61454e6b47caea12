import Bodies
import MemoryMeter
import PostcardForm

/// Counts what the parser allocates while it is in the middle of a part.
enum AllocationCheck {
    /// Every kind of content that the parser has a way of its own for.
    private static let contents: [(title: String, chunk: [UInt8])] = [
        ("random bytes", Body.randomBytes(64 << 10)),
        ("nothing but CRLFs", repeating("\r\n")),
        ("nothing but CRs", repeating("\r")),
        ("delimiters wrong in the last byte", repeating("\r\n--\(Body.usualBoundary.dropLast())!")),
        ("delimiters with a letter behind them", repeating("\r\n--\(Body.usualBoundary)x")),
        (
            "chunks that end inside a delimiter",
            repeating(".", length: 1000) + Array("\r\n--\(Body.usualBoundary.dropLast(3))".utf8)
        ),
        ("chunks of one byte", [0x0D]),
    ]

    /// - Returns: Whether nothing was allocated.
    static func run() throws -> Bool {
        guard memory_meter_counts() else {
            print("Allocations are counted with glibc only.")
            return true
        }
        print("Allocations of the parser in the middle of a part, over 10,000 chunks:\n")
        var isFree = true
        for (title, chunk) in contents {
            let count = try allocations(over: chunk)
            let allocations = "\(count.allocations)".padded(to: 6)
            print("| \(title.padded(to: 40)) | \(allocations) | \(count.bytes) bytes handed on |")
            isFree = isFree && count.allocations == 0 && count.bytes > 0
        }
        return isFree
    }

    private static func allocations(over chunk: [UInt8]) throws -> (allocations: Int, bytes: Int) {
        var limits = FormLimits()
        limits.maximumBodyBytes = .max
        limits.maximumFileBytes = .max
        var parser = try FormParser(boundary: Body.usualBoundary, limits: limits)
        let head = Array("--\(Body.usualBoundary)\r\n\(Body.fileHeader)\r\n\r\n".utf8)
        var bytes = try parser.contentLength(of: head)
        let before = memory_meter_allocations()
        for _ in 0..<10_000 { bytes += try parser.contentLength(of: chunk) }
        return (memory_meter_allocations() - before, bytes)
    }

    private static func repeating(_ text: String, length: Int = 64 << 10) -> [UInt8] {
        let unit = Array(text.utf8)
        return Array((0..<(length / unit.count)).map { _ in unit }.joined())
    }
}

extension FormParser {
    /// Feeds a chunk, and counts the bytes of content that come of it.
    mutating func contentLength(of chunk: [UInt8]) throws(FormProblem) -> Int {
        var position = 0
        var length = 0
        while let event = try nextEvent(in: chunk.span.bytes, at: &position) {
            if case .bytes(let found) = event { length += found.count }
        }
        return length
    }
}

extension String {
    func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }
}
