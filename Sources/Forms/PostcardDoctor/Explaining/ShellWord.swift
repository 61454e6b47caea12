import PostcardForm
import PostcardFoundation

/// Quotes untrusted texts as words of a shell command. The shell expands nothing in the words, and nothing in them
/// controls a terminal.
package enum ShellWord {
    /// The text as a word on one line.
    ///
    /// Characters that a terminal cannot show are written in `$'…'`, which bash, zsh and ksh support, but some other
    /// shells do not.
    static func quoted(_ text: String) -> String {
        if isPlain(text.utf8) { return text }
        guard text.unicodeScalars.contains(where: isUnprintable) else {
            return "'" + text.replacingASCII(["'": #"'\''"#]) + "'"
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

    /// The bytes as a word for every POSIX shell. `printf` writes bytes that a terminal cannot show. Line breaks stay
    /// in the word, because the shell removes them from the end of `printf`'s output.
    package static func quoted(_ bytes: [UInt8]) -> String {
        if isPlain(bytes) { return String(decoding: bytes, as: UTF8.self) }
        var word = ""
        var shown = ""
        var hidden = ""
        func endShown() {
            if !shown.isEmpty { word += "'\(shown)'" }
            shown = ""
        }
        func endHidden() {
            if !hidden.isEmpty { word += "\"$(printf '\(hidden)')\"" }
            hidden = ""
        }
        for (scalar, bytes) in scalars(of: bytes) {
            if let scalar, scalar == "\n" || !isUnprintable(scalar) {
                endHidden()
                shown += scalar == "'" ? #"'\''"# : String(scalar)
            } else {
                endShown()
                hidden += octal(bytes)
            }
        }
        endShown()
        endHidden()
        return word.isEmpty ? "''" : word
    }

    /// A format string for `printf` that writes exactly these bytes, as one shell word.
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
        bytes.map { "\\" + String(String(0o1000 + Int($0), radix: 8).dropFirst()) }.joined()
    }

    /// Whether a shell expands nothing in a text. zsh expands a word that begins with an equals sign.
    private static func isPlain(_ text: some Collection<UInt8>) -> Bool {
        !text.isEmpty && text.first != UInt8(ascii: "=")
            && text.allSatisfy { $0.isLetterOrDigit || "-_./:@%+,=".utf8.contains($0) }
    }

    /// Whether a character is invisible or changes the look of others. `false` for joiners, because emoji use them.
    private static func isUnprintable(_ scalar: Unicode.Scalar) -> Bool {
        if DisplayText.isPlain(scalar) { return false }
        return switch scalar.properties.generalCategory {
        case .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned: true
        default: DisplayText.isSteering(scalar)
        }
    }

    /// The characters of a text with their bytes. The character is `nil` for a byte that is not UTF-8.
    private static func scalars(of bytes: [UInt8]) -> [(Unicode.Scalar?, [UInt8])] {
        var result: [(Unicode.Scalar?, [UInt8])] = []
        var rest = bytes[...]
        while let first = rest.first {
            let count = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4
            let piece = Array(rest.prefix(count))
            if let text = String(validating: piece, as: UTF8.self), text.unicodeScalars.count == 1 {
                result.append((text.unicodeScalars.first, piece))
                rest = rest.dropFirst(count)
            } else {
                result.append((nil, [first]))
                rest = rest.dropFirst()
            }
        }
        return result
    }
}
