/// What part of a file a request asks for (RFC 9110 §14).
enum ByteRange: Equatable {
    case whole
    /// Bytes from the first to behind the last.
    case part(Range<Int64>)
    case notSatisfiable

    /// Reads a `Range` header field.
    ///
    /// A field that is malformed, has another unit or asks for several ranges stands for the whole file, as
    /// RFC 9110 §14.2 allows.
    init(_ value: String, size: Int64) {
        let fields = value.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard fields.count == 2, fields[0].lowercased() == "bytes" else {
            self = .whole
            return
        }
        let bounds = fields[1].split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard bounds.count == 2 else {
            self = .whole
            return
        }
        self.init(first: Self.number(bounds[0]), last: Self.number(bounds[1]), size: size)
    }

    /// A number of a range, or the place of one.
    private enum Bound {
        case missing
        case number(Int64)
        case malformed
    }

    private init(first: Bound, last: Bound, size: Int64) {
        switch (first, last) {
        case (.number(let first), .missing):
            self = first < size ? .part(first..<size) : .notSatisfiable
        case (.number(let first), .number(let last)) where first <= last:
            self = first < size ? .part(first..<(min(last, size - 1) + 1)) : .notSatisfiable
        case (.missing, .number(let count)):
            self = count > 0 && size > 0 ? .part(max(0, size - count)..<size) : .notSatisfiable
        case (.missing, .missing), (.malformed, _), (_, .malformed), (.number, .number):
            self = .whole
        }
    }

    private static func number(_ text: Substring) -> Bound {
        let text = text.trimmingPrefix { $0 == " " || $0 == "\t" }
        if text.isEmpty { return .missing }
        guard text.utf8.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }) else { return .malformed }
        // More digits than a number holds are more bytes than a file has.
        return .number(min(Int64(text) ?? .max, .max - 1))
    }
}
