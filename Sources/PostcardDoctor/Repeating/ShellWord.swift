/// Text as one word of a POSIX shell's command line.
enum ShellWord {
    /// Text as it is, wherever it came from: nothing in it is expanded, and nothing in it steers a terminal.
    ///
    /// Text with control or formatting characters becomes `$'…'` with octal escapes, which stays on one line.
    static func quoted(_ text: String) -> String {
        if !text.isEmpty, text.utf8.allSatisfy(isPlain) { return text }
        guard text.unicodeScalars.contains(where: isUnprintable) else {
            return "'" + text.replacing("'", with: #"'\''"#) + "'"
        }
        var word = "$'"
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\n": word += #"\n"#
            case "\r": word += #"\r"#
            case "\t": word += #"\t"#
            case "'": word += #"\'"#
            case "\\": word += #"\\"#
            default: word += isUnprintable(scalar) ? octal(String(scalar).utf8) : String(scalar)
            }
        }
        return word + "'"
    }

    /// A format with which `printf` writes exactly these bytes, as one word.
    static func printfFormat(_ bytes: [UInt8]) -> String {
        var word = "'"
        guard let text = String(validating: bytes, as: UTF8.self) else {
            for byte in bytes { word += printfEscape(byte) }
            return word + "'"
        }
        for scalar in text.unicodeScalars {
            if scalar.isASCII {
                word += printfEscape(UInt8(scalar.value))
            } else {
                word += isUnprintable(scalar) ? octal(String(scalar).utf8) : String(scalar)
            }
        }
        return word + "'"
    }

    private static func printfEscape(_ byte: UInt8) -> String {
        switch byte {
        case UInt8(ascii: "\n"): #"\n"#
        case UInt8(ascii: "\r"): #"\r"#
        case UInt8(ascii: "\t"): #"\t"#
        case UInt8(ascii: "\\"): #"\\"#
        case UInt8(ascii: "%"): "%%"
        case UInt8(ascii: "'"): octal([byte])
        case 0x20..<0x7F: String(Unicode.Scalar(byte))
        default: octal([byte])
        }
    }

    private static func octal(_ bytes: some Sequence<UInt8>) -> String {
        bytes.map { byte in
            let digits = String(byte, radix: 8)
            return "\\" + String(repeating: "0", count: 3 - digits.count) + digits
        }
        .joined()
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: "-_./:@%+,".utf8.contains(byte)
        }
    }

    /// Characters that are not seen, or that change how others are seen.
    private static func isUnprintable(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned: true
        default: false
        }
    }
}
