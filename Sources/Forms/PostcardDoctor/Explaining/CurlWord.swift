import PostcardFoundation

/// Quoted words as curl reads them.
package enum CurlWord {
    /// The byte that each letter means after a backslash in a configuration file of curl (`-K`).
    package static let escapes: [UInt8: UInt8] = [
        UInt8(ascii: "n"): 0x0A, UInt8(ascii: "r"): 0x0D, UInt8(ascii: "t"): 0x09, UInt8(ascii: "v"): 0x0B,
    ]

    /// A line with an option and its value for a configuration file of curl (`-K`).
    package static func line(_ option: String, _ value: some Sequence<UInt8>) -> [UInt8] {
        var line = Array("\(option) = \"".utf8)
        for byte in value {
            if let letter = escapes.first(where: { $0.value == byte })?.key {
                line += [UInt8(ascii: "\\"), letter]
            } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
                line += [UInt8(ascii: "\\"), byte]
            } else {
                line.append(byte)
            }
        }
        return line + Array("\"\n".utf8)
    }

    /// The value of a `-F` option in quotes, so that curl reads no parameters in it.
    package static func quoted(_ text: String) -> String {
        "\"" + text.replacingASCII(["\\": #"\\"#, "\"": #"\""#]) + "\""
    }
}
