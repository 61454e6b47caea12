import Memmem
import PostcardForm

/// What a reader counted: enough that nothing it did can be left out by the compiler.
public struct Tally: Sendable, Equatable {
    public var parts = 0
    public var contentLength = 0
    public var nameLength = 0

    public init() {}
}

extension Body {
    /// Parses the body in chunks, and reads each part's name as a `String`.
    ///
    /// - Parameter chunkLength: The bytes of a chunk.
    /// - Throws: `FormProblem`, and ``Miscounted`` where the parser found something else than is there.
    public func parse(chunkLength: Int) throws -> Tally {
        var limits = FormLimits()
        limits.maximumParts = .max
        limits.maximumBodyBytes = .max
        var parser = try FormParser(boundary: boundary, limits: limits)
        var tally = Tally()
        var start = 0
        while start < bytes.count {
            let end = min(start + chunkLength, bytes.count)
            let chunk = bytes.span.bytes.extracting(start..<end)
            var position = 0
            while let event = try parser.nextEvent(in: chunk, at: &position) {
                switch event {
                case .partBegan(let header): tally.nameLength += header.name.utf8.count
                case .bytes(let found): tally.contentLength += found.count
                case .partEnded: tally.parts += 1
                }
            }
            start = end
        }
        try parser.finish()
        guard tally.parts == partCount, tally.contentLength == contentLength else { throw Miscounted(tally: tally) }
        return tally
    }

    /// Scans the same chunks for the same delimiter with the C library's `memmem`. It is a yardstick, not a parser:
    /// it misses delimiters that span two chunks.
    ///
    /// - Returns: How many delimiters it found.
    public func scan(chunkLength: Int) -> Int {
        let delimiter = Array("\r\n--\(boundary)".utf8)
        return bytes.withUnsafeBytes { bytes in
            delimiter.withUnsafeBytes { delimiter in
                var found = 0
                guard let base = bytes.baseAddress, let wanted = delimiter.baseAddress else { return found }
                for start in stride(from: 0, to: bytes.count, by: chunkLength) {
                    let end = base + min(start + chunkLength, bytes.count)
                    var place = base + start
                    while let match = find_bytes(place, end - place, wanted, delimiter.count) {
                        found += 1
                        place = match + delimiter.count
                    }
                }
                return found
            }
        }
    }
}

/// A parser that is fast and wrong is not measured.
public struct Miscounted: Error {
    public let tally: Tally
}
