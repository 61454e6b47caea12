import PostcardFoundation

/// Finds damage that is visible in the first bytes of a file.
package struct DamagedStart: Sendable {
    let promise: FilePromise
    /// The first bytes read so far.
    private(set) var bytes: [UInt8] = []

    /// The number of bytes to examine at the start of a file.
    package static let bytesCount = 256

    /// Begins to read a file with this declared media type and filename, if the part has them.
    package init(contentType: String?, filename: String?) {
        promise = FilePromise(contentType: contentType, filename: filename)
    }

    /// Whether enough bytes were read, so that further bytes have no effect.
    var isComplete: Bool { bytes.count >= Self.bytesCount || promise == .text }

    package mutating func read(_ chunk: UnsafeRawBufferPointer) {
        if !isComplete { bytes += chunk.prefix(Self.bytesCount - bytes.count) }
    }

    /// The format that the first bytes show, or else the format that the type or filename promises.
    var format: FileFormat? { FileFormat(firstBytes: bytes) ?? promised }

    private var promised: FileFormat? { promise.format }

    package var damage: FileDamage? {
        // Fewer than 16 bytes are a damaged file only if the type or filename promises a format.
        if promise == .text || bytes.count < 16 && promised == nil { return nil }
        var found: FileDamage?
        if FileFormat(firstBytes: bytes) != nil {
            found = escaped
        } else {
            found = dataURL ?? hexadecimal ?? base64 ?? escaped ?? lineBreak ?? png ?? jpeg ?? webP ?? text
        }
        // Readers of PDF accept a line break before the header, so it does not prove damage.
        let isProven = found?.cause != .lineBreakBefore || !holdsDocument
        found?.isProven = isProven
        return found
    }

    private var holdsDocument: Bool { bytes.firstRange(of: Array("%PDF-".utf8)) != nil }

    private func begins(_ text: String, at offset: Int = 0) -> Bool { bytes.dropFirst(offset).starts(with: text.utf8) }

    private func shows(_ decoded: [UInt8]) -> Bool {
        guard let format = FileFormat(firstBytes: decoded) else { return false }
        return format != .other || promised == .other
    }
}

// MARK: - Encodings that were not undone

extension DamagedStart {
    private var shown: Int { min(bytes.count, 64) }

    private var dataURL: FileDamage? {
        let header = bytes.dropFirst(5).prefix { $0 > .space && $0 < 0x7F && $0 != UInt8(ascii: ",") }
        // The rest of the header may arrive later.
        guard bytes.count >= 16, begins("data:"),
            [nil, UInt8(ascii: ",")].contains(bytes.dropFirst(5 + header.count).first),
            header.contains(.slash) || header.suffix(7).elementsEqual(";base64".utf8)
        else { return nil }
        return FileDamage(.dataURL, length: shown)
    }

    private var hexadecimal: FileDamage? {
        let isPrefixed = begins("0x") || begins("\\x")
        let digits = bytes.dropFirst(isPrefixed ? 2 : 0).filter { !$0.isBlank && !$0.isLineBreak && $0 != .colon }
        let values = digits.map { $0.hexadecimalValue }
        guard values.count >= 16, values.allSatisfy({ $0 != nil }) else { return nil }
        let decoded = stride(from: 0, to: values.count - 1, by: 2).map {
            (values[$0] ?? 0) << 4 | (values[$0 + 1] ?? 0)
        }
        // A digest has at most 128 digits, and a dump has lines. Without a promised format, neither is damage.
        guard
            promised == nil
                ? values.count > 128 && !bytes.contains(where: { $0.isLineBreak }) && shows(decoded)
                : values.count >= 64 && Set(values).count >= 8 || shows(decoded)
        else { return nil }
        return FileDamage(.hexadecimal, length: shown)
    }

    private var base64: FileDamage? {
        let isQuoted = bytes.first == .quote
        var text = bytes.dropFirst(isQuoted ? 1 : 0).filter { !$0.isLineBreak }
        if isQuoted, text.last == .quote { text.removeLast() }
        while text.last == .equals { text.removeLast() }
        // The base64url alphabet differs in two characters (RFC 4648 §5).
        text = text.map { $0 == .dash ? UInt8(ascii: "+") : $0 == UInt8(ascii: "_") ? .slash : $0 }
        guard text.count >= 22, let decoded = Data(base64Encoded: Data(text.prefix(text.count / 4 * 4))),
            shows(Array(decoded)) || (promised != nil && text.count >= 64 && Set(text).count >= 16)
        else { return nil }
        return FileDamage(.base64, length: shown)
    }

    /// The damage of a file that was written as a string or a list of numbers, in JSON or source code.
    private var escaped: FileDamage? {
        let isMarked = [#""\u0089PNG"#, #""\ufffdPNG"#, #""\u00ff\u00d8\u00ff"#, #"b'\x89PNG"#, #"b'\xff\xd8\xff"#]
            .contains { begins($0) }
        if isMarked { return FileDamage(.escaped, length: shown) }
        guard promised != nil, bytes.count >= 16, bytes.allSatisfy({ $0 >= 0x20 }) else { return nil }
        let isBuffer = [#"{"type":"Buffer""#, #"{"0":"#, #"{"0": "#].contains { begins($0) }
        let isList =
            (begins("[") || begins("("))
            && bytes.prefix(48).dropFirst().allSatisfy {
                $0.isDigit || $0.isBlank || $0 == UInt8(ascii: ",") || $0 == .dash
            }
        guard isBuffer || isList || escapes >= 2 else { return nil }
        return FileDamage(.escaped, length: shown)
    }

    private var escapes: Int {
        zip(bytes, bytes.dropFirst()).count { $0 == .backslash && "urntbf0x".utf8.contains($1) }
    }
}

// MARK: - Bytes

extension DamagedStart {
    /// The damage of a file that was replaced by a text.
    private var text: FileDamage? {
        guard let promised, promised != .other, bytes.count >= 8, !holdsDocument,
            bytes.prefix(64).allSatisfy({ $0 == .tab || $0.isLineBreak || (0x20..<0x7F).contains($0) }),
            bytes.allSatisfy({ $0 == .tab || $0.isLineBreak || $0 >= 0x20 })
        else { return nil }
        return FileDamage(.text, length: shown)
    }

    private var lineBreak: FileDamage? {
        let count = bytes.prefix(8).prefix { $0.isLineBreak }.count
        guard count > 0, shows(Array(bytes.dropFirst(count))) else { return nil }
        return FileDamage(.lineBreakBefore, length: count)
    }

    /// The damage to the signature of a PNG. Its high byte, CRLF and LF reveal conversions (PNG 3rd edition §5.2).
    private var png: FileDamage? {
        let breaks =
            [
                [0x0D, 0x0A, 0x1A, 0x0A], [0x0A, 0x1A, 0x0A], [0x0D, 0x0D, 0x0A, 0x1A, 0x0D, 0x0A],
                [0x0D, 0x0A, 0x1A, 0x0D, 0x0A], [0x0D, 0x0D, 0x0A, 0x1A, 0x0D, 0x0D, 0x0A],
            ] as [[UInt8]]
        guard let name = bytes.prefix(8).firstRange(of: Array("PNG".utf8)),
            let index = breaks.firstIndex(where: { bytes[name.upperBound...].starts(with: $0) })
        else { return nil }
        switch Array(bytes[..<name.lowerBound]) {
        case [0x89] where index > 0:
            return FileDamage(
                index == 1 ? .removedCarriageReturns : .addedCarriageReturns, at: 4, length: index == 1 ? 1 : 2)
        case [], [UInt8(ascii: "?")]: return FileDamage(.ascii, length: name.lowerBound)
        case [0xEF, 0xBF, 0xBD]: return FileDamage(.replaced, length: 3)
        case let start where start.count > 1 && String(validating: start, as: UTF8.self)?.unicodeScalars.count == 1:
            return FileDamage(.reencoded, length: start.count)
        default: return nil
        }
    }

    /// The damage to the header of a WebP. The size in the header may contain an LF, which became CRLF.
    private var webP: FileDamage? {
        guard begins("RIFF"), begins("WEBP", at: 9),
            let place = bytes[4..<9].firstRange(of: [.carriageReturn, .lineFeed])?.lowerBound
        else { return nil }
        return FileDamage(.addedCarriageReturns, at: Int64(place), length: 2)
    }

    /// The damage to the start of a JPEG. An intact start has at least three bytes above 7F.
    private var jpeg: FileDamage? {
        let names = ["JFIF\0", "Exif\0"].map { Array($0.utf8) }
        let isNamed = names.contains { bytes.prefix(32).firstRange(of: $0) != nil }
        let holdsData = bytes.count { $0 < 0x20 && !$0.isLineBreak && $0 != .tab } >= 2
        guard isNamed || (promised == .jpeg && holdsData) else { return nil }
        if bytes.starts(with: [0xEF, 0xBF, 0xBD, 0xEF, 0xBF, 0xBD, 0xEF, 0xBF, 0xBD]) {
            return FileDamage(.replaced, length: 9)
        }
        if begins("ÿØÿ") { return FileDamage(.reencoded, length: 6) }
        if begins("???") { return FileDamage(.ascii, length: 3) }
        return isNamed && bytes.starts(with: [0, 0x10]) ? FileDamage(.ascii) : nil
    }
}

extension UInt8 {
    fileprivate var isLineBreak: Bool { self == .lineFeed || self == .carriageReturn }
}
