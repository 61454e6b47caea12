import ArgumentParser

/// A number of bytes as a person writes it: `1500`, `100MB`, `4 GiB`.
struct ByteCount: ExpressibleByArgument, Equatable {
    let bytes: Int64

    init?(argument: String) {
        let digits = argument.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        let unit = argument.dropFirst(digits.count).drop { $0 == " " }.lowercased()
        guard let factor = Self.factors[unit], let number = Double(digits), number >= 0 else { return nil }
        let bytes = number * factor
        guard bytes < Double(Int64.max), bytes.rounded() == bytes else { return nil }
        self.bytes = Int64(bytes)
    }

    private static let factors: [String: Double] = [
        "": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "k": 1024, "m": 1_048_576, "g": 1_073_741_824,
        "kib": 1024, "mib": 1_048_576, "gib": 1_073_741_824, "tib": 1_099_511_627_776,
    ]
}
