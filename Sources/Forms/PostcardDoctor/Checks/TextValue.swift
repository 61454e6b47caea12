import PostcardForm
import PostcardFoundation

/// Recognizes values of text fields that no one would have typed.
enum TextValue {
    /// Returns the code of the problem with a field's text, or `nil` if a person could have typed the text. The field's
    /// name decides what `3,14` is: two values in a field whose name says that it holds several, such as `sizes`, and
    /// otherwise one number, written with a comma.
    static func code(of text: String, named name: String) -> FormProblem.Code? {
        if text.isEmpty { return nil }
        if isOptional(text) { return .optionalDescription }
        if nulls.contains(text) { return .nullText }
        if isPath(text) { return .pathInsteadOfFile }
        if isObject(text) { return .objectDescription }
        if isNumberForPeople(text, named: name) { return .surprisingNumber }
        if isDateForPeople(text) { return .surprisingDate }
        return nil
    }

    private static let nulls: Set<String> = [
        "nil", "null", "<null>", "(null)", "NULL", "undefined", "None", "NaN", "nan", "NSNull", "<nil>",
    ]

    private static func isOptional(_ text: String) -> Bool {
        text.hasPrefix("Optional(") && text.hasSuffix(")")
    }

    /// Whether a text is the path or address of a file on the sender's device.
    private static func isPath(_ text: String) -> Bool {
        guard text.utf8.count <= 1024, text.utf8.allSatisfy({ $0 >= 0x20 }) else { return false }
        let starts = [
            "file://", "blob:", "content://", "ph://", "assets-library://", "/private/var/", "/var/mobile/", "File: '",
        ]
        if starts.contains(where: text.hasPrefix) { return true }
        guard MediaType.forExtension(of: text) != nil else { return false }
        let isDrive = text.dropFirst().hasPrefix(":\\") && text.utf8.first?.isLetter == true
        let folders = ["/Users/", "/home/", "/tmp/", "/var/", "/data/user/", "/storage/", "/sdcard/", "~/"]
        // Paths of network shares begin with two backslashes.
        if text.hasPrefix("\\\\") { return true }
        // curl's `--form-string` and other programs send the @ before a filename as text.
        return isDrive || folders.contains(where: text.hasPrefix) || (text.hasPrefix("@") && !text.contains(" "))
    }

    /// Whether a text is the printed form of an object in Foundation, Swift, Dart, Java, .NET, Ruby, Python or another
    /// language.
    private static func isObject(_ text: String) -> Bool {
        if text.hasPrefix("[object "), text.hasSuffix("]") { return true }
        if isInAngleBrackets(text) || isBytes(text) || isJavaObject(text) { return true }
        if text.hasPrefix("{\n") || text.hasPrefix("(\n"), text.hasSuffix("}") || text.hasSuffix(")") {
            return text.hasPrefix("(") || text.contains(" = ") && text.contains(";")
        }
        if text.hasPrefix("{length = ") { return true }
        if text.hasPrefix("[\""), text.hasSuffix("]"), text.contains("\": ") || text.contains("\", \"") { return true }
        if text.hasPrefix("[AnyHashable(") { return true }
        if text.hasPrefix("Instance of '"), text.hasSuffix("'") { return true }
        if text.hasPrefix("System."), !text.contains(" "), !text.contains("/") { return true }
        return isStructure(text)
    }

    /// Whether a text is an object printed in angle brackets, such as `<UIImage: 0x6000…>`. Markup is not.
    private static func isInAngleBrackets(_ text: String) -> Bool {
        guard text.hasPrefix("<") || text.hasPrefix("#<"), !text.contains("=\""), !text.contains("</") else {
            return false
        }
        let inside = text.drop { $0 == "#" }.dropFirst()
        let type = inside.utf8.prefix { $0.isLetter || $0.isDigit || ".:_".utf8.contains($0) }
        if !type.isEmpty, text.contains(":0x") || text.contains(" 0x") { return true }
        guard text.hasSuffix(">"), !inside.dropLast().contains(where: { $0 == "<" || $0 == ">" }) else { return false }
        let isHexadecimal = inside.dropLast().utf8.allSatisfy { $0.hexadecimalValue != nil || $0 == .space }
        if isHexadecimal, inside.utf8.count > 8 { return true }
        // Unlike the name of a type, the name of a markup tag does not mix small letters and capitals.
        let isTypeName =
            type.contains { $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: ".") }
            || (type.contains { $0 != $0.asciiLowercased } && type.contains { $0.isLetter && $0 == $0.asciiLowercased })
        return isTypeName && inside.utf8.dropFirst(type.count).first == .space
    }

    /// Whether a text is the printed form of bytes: `Data` in Swift, bytes in Python, a `Blob` in JavaScript, a stream
    /// in PHP, or the first bytes of a picture as numbers.
    private static func isBytes(_ text: String) -> Bool {
        if text.hasPrefix("Blob {") || text.hasPrefix("File {") || text.hasPrefix("bytearray(b") { return true }
        if text.hasPrefix("Resource id #") { return true }
        let isList = text.utf8.first.map { $0.isDigit || "[(-".utf8.contains($0) } == true
        if isList, text.utf8.count > 20 {
            let numbers = text.utf8.prefix(64).split { !$0.isDigit && $0 != .dash }.prefix(3)
            if firstBytes.contains(numbers.map { String(Substring($0)) }) { return true }
        }
        if text.hasSuffix(" bytes"), text.utf8.dropLast(6).allSatisfy({ $0.isDigit }), text.utf8.count > 6 {
            return true
        }
        return ["'", "\""].contains { text.hasPrefix("b\($0)") && text.hasSuffix($0) } && text.contains("\\x")
    }

    /// The first bytes of PNG, JPEG and GIF files, as unsigned and signed numbers.
    private static let firstBytes: Set<[String]> = [
        ["137", "80", "78"], ["-119", "80", "78"], ["255", "216", "255"], ["-1", "-40", "-1"], ["71", "73", "70"],
    ]

    /// Whether a text is a printed Java object, such as `[B@1b6d3586` or `com.example.Photo@1b6d3586`.
    private static func isJavaObject(_ text: String) -> Bool {
        guard text.utf8.contains(UInt8(ascii: "@")) else { return false }
        let pieces = text.split(separator: "@", omittingEmptySubsequences: false)
        guard pieces.count == 2, (5...8).contains(pieces[1].utf8.count),
            pieces[1].utf8.allSatisfy({ $0.hexadecimalValue != nil })
        else { return false }
        let names = pieces[0].split(separator: ".")
        return pieces[0] == "[B" || (names.count > 1 && names.last?.first?.isUppercase == true)
    }

    /// Whether a text is a printed structure, such as `Place(city: "Jeju", visits: 3)`.
    private static func isStructure(_ text: String) -> Bool {
        guard text.hasSuffix(")"), let open = text.utf8.firstIndex(of: UInt8(ascii: "(")), open > text.startIndex else {
            return false
        }
        let type = text[..<open]
        guard type.first?.isUppercase == true, type.utf8.allSatisfy({ $0.isTokenCharacter }) else { return false }
        let inside = text[text.index(after: open)...]
        guard let colon = inside.firstIndex(of: ":"), colon > inside.startIndex else { return false }
        return inside[..<colon].utf8.allSatisfy { $0.isTokenCharacter } && inside[colon...].hasPrefix(": ")
    }

    /// Whether a text is a number with thousands separators or a decimal comma.
    ///
    /// Two numbers and a comma may be a list. `1,2` always counts as a list; `12,50` and `1,234` do if the field's name
    /// is a plural.
    private static func isNumberForPeople(_ text: String, named name: String) -> Bool {
        guard text.utf8.count <= 30 else { return false }
        let number = text.hasPrefix("-") ? text.dropFirst() : text[...]
        guard number.utf8.allSatisfy({ $0.isDigit || $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: ".") }) else {
            return ["inf", "+infinity", "-inf"].contains(text)
        }
        let groups = number.split(separator: ",", omittingEmptySubsequences: false)
        guard groups.count > 1, let first = groups.first, let last = groups.last else { return false }
        let isSingle = groups.count == 2 && !number.contains(".") && first != "0"
        if isSingle, last.count == 1 || isNameOfMany(name) { return false }
        if last.contains(".") || groups.count > 2 || last.count == 3 {
            let whole = last.prefix { $0 != "." }
            return (1...3).contains(first.count) && first.utf8.allSatisfy { $0.isDigit }
                && groups.dropFirst().dropLast().allSatisfy { $0.count == 3 } && whole.count == 3
        }
        let thousands = first.split(separator: ".", omittingEmptySubsequences: false)
        let isGrouped = thousands.count == 1 || thousands.dropFirst().allSatisfy { $0.count == 3 }
        return !first.isEmpty && isGrouped && (1...2).contains(last.count)
    }

    private static func isNameOfMany(_ name: String) -> Bool {
        let name = name.lowercased()
        return ["s", "]", "list", "range", "position", "point", "size"].contains { name.hasSuffix($0) }
    }

    /// Whether a text is a date in a style for people, such as `2026-11-21 11:04:10 +0000` or `Nov 21, 2026`.
    private static func isDateForPeople(_ text: String) -> Bool {
        guard (6...64).contains(text.utf8.count), text.utf8.contains(where: { $0.isDigit }) else { return false }
        let shape = text.utf8.prefix(25).map { $0.isDigit ? UInt8(ascii: "9") : $0 }
        if ["+", "-"].contains(where: { shape.elementsEqual("9999-99-99 99:99:99 \($0)9999".utf8) }) { return true }
        for separator in [UInt8.slash, UInt8(ascii: ".")] {
            let pieces = shape.split(separator: separator, omittingEmptySubsequences: false)
            guard pieces.count == 3 else { continue }
            let numbers = pieces.map { String(streamSafe: $0) }
            if ["9", "99"].contains(numbers[0]), ["9", "99"].contains(numbers[1]),
                numbers[2] == "9999" || (numbers[2] == "99" && separator == .slash)
            {
                return true
            }
        }
        let name = String(text.drop { $0 == " " || $0 == "," }.prefix(3))
        guard days.contains(name) || months.contains(name) else { return false }
        let words = text.split(whereSeparator: { $0 == " " || $0 == "," })
        guard words.count >= 3 else { return false }
        if days.contains(name), months.contains(String(words[1].prefix(3))) { return true }
        return months.contains(name) && words[1].allSatisfy { $0.isNumber }
            && words[2].count == 4 && words[2].allSatisfy({ $0.isNumber })
    }

    private static let months: Set<String> = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
    private static let days: Set<String> = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
}

/// Repairs texts whose UTF-8 bytes were read in another charset.
enum Mojibake {
    /// The text that its sender meant; `nil` if nothing suggests that its UTF-8 bytes were read in another charset.
    static func undone(_ text: String) -> String? {
        if text.utf8.allSatisfy({ $0 < 0x80 }) { return nil }
        var bytes: [UInt8] = []
        for scalar in text.unicodeScalars {
            if scalar.value < 0x100 {
                bytes.append(UInt8(scalar.value))
            } else if let byte = windows1252[scalar] {
                bytes.append(byte)
            } else {
                return nil
            }
        }
        guard let meant = String(validating: bytes, as: UTF8.self), meant.utf8.contains(where: { $0 >= 0x80 }) else {
            return nil
        }
        return meant
    }

    /// The Windows-1252 byte of each character that Latin-1 encodes differently.
    private static let windows1252: [Unicode.Scalar: UInt8] = {
        let upper: [Unicode.Scalar?] = [
            "€", nil, "‚", "ƒ", "„", "…", "†", "‡", "ˆ", "‰", "Š", "‹", "Œ", nil, "Ž", nil,
            nil, "‘", "’", "“", "”", "•", "–", "—", "˜", "™", "š", "›", "œ", nil, "ž", "Ÿ",
        ]
        var table: [Unicode.Scalar: UInt8] = [:]
        for (index, scalar) in upper.enumerated() {
            if let scalar { table[scalar] = UInt8(0x80 + index) }
        }
        return table
    }()
}
