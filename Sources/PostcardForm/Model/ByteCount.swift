/// A number of bytes as a person writes it: `1500`, `100MB`, `4 GiB`.
///
/// Units of a thousand are written with a B, those of 1024 with an iB or as one letter.
package struct ByteCount: Sendable, Equatable {
    package let bytes: Int64

    /// - Returns: `nil` where the text is no whole number of bytes.
    package init?(_ text: String) {
        let digits = text.utf8.prefix { $0.isDigit || $0 == UInt8(ascii: ".") }
        let unit = text.utf8.dropFirst(digits.count).drop { $0 == .space }.map(\.asciiLowercased)
        guard let factor = Self.factors[String(decoding: unit, as: UTF8.self)],
            let number = String(digits).flatMap({ Double($0) }), let bytes = Int64(exactly: number * factor)
        else { return nil }
        self.bytes = bytes
    }

    private static let factors: [String: Double] = [
        "": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "k": 1024, "m": 1_048_576, "g": 1_073_741_824,
        "kib": 1024, "mib": 1_048_576, "gib": 1_073_741_824, "tib": 1_099_511_627_776,
    ]
}
