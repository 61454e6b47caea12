import PostcardCLibrary
package import PostcardFoundation

/// A charset that a part or a form names for its texts, by a label of the WHATWG Encoding Standard §4.2.
package struct Charset: Sendable, Hashable {
    /// The index of the charset in ``labels``.
    private let row: Int

    private init(row: Int) {
        self.row = row
    }

    package static let utf8 = Charset(row: 0)

    /// Finds a charset by its label, ignoring case and surrounding blanks. `nil` if the label is unknown.
    package init?(_ label: some Collection<UInt8>) {
        let blanks: Set<UInt8> = [.space, .tab, .carriageReturn, .lineFeed]
        let trimmed = label.drop { blanks.contains($0) }.prefix { !blanks.contains($0) }
        guard trimmed.count <= Self.maximumLabelBytes,
            let row = Self.rows[String(streamSafe: trimmed.map { $0.asciiLowercased })]
        else { return nil }
        self.row = row
    }

    /// The charset that the form's field `_charset_` names; `nil` if it is unknown. UTF-16 means UTF-8, because
    /// browsers then send UTF-8 (WHATWG Encoding Standard §4.3).
    package init?(ofForm label: some Collection<UInt8>) {
        guard let charset = Charset(label) else { return nil }
        self = charset.isUTF16 ? .utf8 : charset
    }

    /// The charset's name in the platform's converter.
    fileprivate var converter: String { Self.labels[row].converter }

    fileprivate var isUTF16: Bool { converter.hasPrefix("UTF-16") }

    /// Whether the bytes of a text in this charset may also be valid UTF-8, with another meaning.
    package var hidesInASCII: Bool { isUTF16 || converter == "ISO-2022-JP" }

    /// The decoded text; `nil` if the bytes are not text in this charset, or if the platform does not know the charset.
    package func decode(_ bytes: Data) -> String? {
        var decoder = CharsetDecoder()
        return decoder.decode(bytes, from: self, repairing: false)
    }
}

/// Decodes texts with a converter of the platform for each charset: iconv of glibc, or Core Foundation on Apple's
/// systems. Other platforms decode only UTF-8 and windows-1252.
package struct CharsetDecoder: ~Copyable {
    #if canImport(Glibc)
    /// The open converters of iconv by charset.
    private var conversions: [String: Conversion] = [:]
    #endif

    package init() {}

    /// The text of a field; `nil` if the bytes are text neither in UTF-8 nor in `charset`, which the part or the form
    /// names. UTF-8 is tried first, because senders often name a wrong charset. Only a charset with
    /// ``Charset/hidesInASCII`` is tried before UTF-8. `repairing` says whether faulty bytes become U+FFFD.
    package mutating func text(of bytes: Data, in charset: Charset?, repairing: Bool) -> String? {
        if let charset, charset.hidesInASCII, let text = decode(bytes, from: charset, repairing: repairing) {
            return text
        }
        return String(validating: bytes, as: UTF8.self)
            ?? charset.flatMap { decode(bytes, from: $0, repairing: repairing) }
    }

    /// Decodes bytes in a charset. `nil` if the platform does not know it, or for faulty bytes without `repairing`.
    fileprivate mutating func decode(_ bytes: Data, from charset: Charset, repairing: Bool) -> String? {
        switch charset.converter {
        case "UTF-8":
            return String(validating: bytes, as: UTF8.self)
                ?? (repairing ? String(decoding: bytes, as: UTF8.self) : nil)
        case "WINDOWS-1252": return Self.windows1252(bytes)
        case _ where charset.isUTF16:
            // A byte order mark takes precedence over the label.
            if bytes.starts(with: [0xFF, 0xFE]) {
                return converted(Data(bytes.dropFirst(2)), "UTF-16LE", repairing)
            }
            if bytes.starts(with: [0xFE, 0xFF]) {
                return converted(Data(bytes.dropFirst(2)), "UTF-16BE", repairing)
            }
            return converted(bytes, charset.converter, repairing)
        case let converter: return converted(bytes, converter, repairing)
        }
    }

    /// The text of bytes in windows-1252, which needs no converter of the platform.
    private static func windows1252(_ bytes: Data) -> String {
        var scalars = String.UnicodeScalarView()
        for byte in bytes {
            let isOther = (0x80..<0xA0).contains(byte)
            scalars.append(isOther ? windows1252Scalars[Int(byte) - 0x80] : Unicode.Scalar(byte))
        }
        return String(scalars)
    }

    /// The characters of the bytes from 0x80 to 0x9F in windows-1252.
    private static let windows1252Scalars = Array(
        "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8D}Ž\u{8F}\u{90}‘’“”•–—˜™š›œ\u{9D}žŸ".unicodeScalars)
}

#if canImport(Glibc)
extension CharsetDecoder {
    private mutating func converted(_ bytes: Data, _ converter: String, _ repairing: Bool) -> String? {
        guard let conversion = conversions[converter] ?? Conversion(from: converter) else { return nil }
        conversions[converter] = conversion
        return conversion.text(of: bytes, repairing: repairing)
    }

    /// A converter of iconv. It belongs to one task.
    private final class Conversion {
        private let descriptor: iconv_t

        init?(from converter: String) {
            let descriptor = iconv_open("UTF-8", converter)
            guard let descriptor, Int(bitPattern: descriptor) != -1 else { return nil }
            self.descriptor = descriptor
        }

        deinit { iconv_close(descriptor) }

        func text(of bytes: Data, repairing: Bool) -> String? {
            _ = iconv(descriptor, nil, nil, nil, nil)
            var text: [UInt8] = []
            let isText = bytes.withUnsafeBytes { input in
                var next = UnsafeMutablePointer(mutating: input.bindMemory(to: CChar.self).baseAddress)
                var left = input.count
                while left > 0 {
                    switch step(&next, &left, appendingTo: &text) {
                    case nil, E2BIG?: break
                    case EILSEQ? where repairing:
                        text += Self.replacement
                        next = next?.advanced(by: 1)
                        left -= 1
                    // The last character is incomplete.
                    case EINVAL? where repairing:
                        text += Self.replacement
                        left = 0
                    default: return false
                    }
                }
                // Ends the text in charsets that have shift states.
                var none: UnsafeMutablePointer<CChar>?
                return step(&none, &left, appendingTo: &text) == nil
            }
            return isText ? String(validating: text, as: UTF8.self) : nil
        }

        private static let replacement: [UInt8] = [0xEF, 0xBF, 0xBD]
        private static let pieceBytes = 16 << 10

        /// Converts as many bytes as fit into a piece of output. Returns the error that stopped the conversion.
        private func step(
            _ next: inout UnsafeMutablePointer<CChar>?, _ left: inout Int, appendingTo text: inout [UInt8]
        ) -> Int32? {
            withUnsafeTemporaryAllocation(of: CChar.self, capacity: Self.pieceBytes) { piece in
                var end = piece.baseAddress
                var room = piece.count
                let result = iconv(descriptor, &next, &left, &end, &room)
                let error = errno
                text.append(
                    contentsOf: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(piece)[..<(piece.count - room)])
                )
                return result == -1 ? error : nil
            }
        }
    }
}
#elseif canImport(Darwin)
extension CharsetDecoder {
    private func converted(_ bytes: Data, _ converter: String, _ repairing: Bool) -> String? {
        let encoding = CFStringConvertIANACharSetNameToEncoding(converter as CFString)
        guard encoding != kCFStringEncodingInvalidId else { return nil }
        let bytes = Array(bytes)
        return CFStringCreateWithBytes(nil, bytes, bytes.count, encoding, false) as String?
    }
}
#else
extension CharsetDecoder {
    private func converted(_ bytes: Data, _ converter: String, _ repairing: Bool) -> String? { nil }
}
#endif

extension Charset {
    // MARK: - Labels

    private static let maximumLabelBytes = 24

    private static let rows: [String: Int] = {
        var rows: [String: Int] = [:]
        for (row, entry) in labels.enumerated().reversed() {
            for label in entry.labels.split(separator: " ") { rows[String(label)] = row }
        }
        return rows
    }()

    /// The name of each charset in the platform's converter, and the charset's labels.
    private static let labels: [(converter: String, labels: String)] = [
        ("UTF-8", "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8"),
        ("CP866", "866 cp866 csibm866 ibm866"),
        ("ISO-8859-2", "csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2"),
        ("ISO-8859-3", "csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3"),
        ("ISO-8859-4", "csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4"),
        (
            "ISO-8859-5",
            "csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988"
        ),
        (
            "ISO-8859-6",
            "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6 iso-8859-6-e "
                + "iso-8859-6-i iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987"
        ),
        (
            "ISO-8859-7",
            "csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 iso8859-7 iso88597 iso_8859-7 "
                + "iso_8859-7:1987 sun_eu_greek"
        ),
        (
            "ISO-8859-8",
            "csiso88598e csiso88598i csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-8859-8-i iso-ir-138 "
                + "iso8859-8 iso88598 iso_8859-8 iso_8859-8:1988 logical visual"
        ),
        ("ISO-8859-10", "csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6"),
        ("ISO-8859-13", "iso-8859-13 iso8859-13 iso885913"),
        ("ISO-8859-14", "iso-8859-14 iso8859-14 iso885914"),
        ("ISO-8859-15", "csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9"),
        ("ISO-8859-16", "iso-8859-16"),
        ("KOI8-R", "cskoi8r koi koi8 koi8-r koi8_r"),
        ("KOI8-U", "koi8-ru koi8-u"),
        ("MACINTOSH", "csmacintosh mac macintosh x-mac-roman"),
        ("CP874", "dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874"),
        ("WINDOWS-1250", "cp1250 windows-1250 x-cp1250"),
        ("WINDOWS-1251", "cp1251 windows-1251 x-cp1251"),
        (
            "WINDOWS-1252",
            "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 "
                + "iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252"
        ),
        ("WINDOWS-1253", "cp1253 windows-1253 x-cp1253"),
        (
            "WINDOWS-1254",
            "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 "
                + "windows-1254 x-cp1254"
        ),
        ("WINDOWS-1255", "cp1255 windows-1255 x-cp1255"),
        ("WINDOWS-1256", "cp1256 windows-1256 x-cp1256"),
        ("WINDOWS-1257", "cp1257 windows-1257 x-cp1257"),
        ("WINDOWS-1258", "cp1258 windows-1258 x-cp1258"),
        ("MAC-CYRILLIC", "x-mac-cyrillic x-mac-ukrainian"),
        ("GB18030", "chinese csgb2312 csiso58gb231280 gb18030 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk"),
        ("BIG5-HKSCS", "big5 big5-hkscs cn-big5 csbig5 x-x-big5"),
        ("EUC-JP", "cseucpkdfmtjapanese euc-jp x-euc-jp"),
        ("ISO-2022-JP", "csiso2022jp iso-2022-jp"),
        ("CP932", "csshiftjis ms_kanji shift-jis shift_jis sjis windows-31j x-sjis"),
        (
            "CP949",
            "cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 "
                + "windows-949"
        ),
        ("UTF-16BE", "unicodefffe utf-16be"),
        ("UTF-16LE", "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le"),
    ]
}

/// Reads UTF-8 byte by byte (RFC 3629 §4).
package struct UTF8Decoder: Sendable {
    package enum Result {
        case incomplete
        /// A complete character with its length in bytes.
        case scalar(Unicode.Scalar, length: Int)
        /// Bytes that are not UTF-8. The first wrong byte is `start` bytes before the byte just read.
        case malformed(start: Int)
    }

    /// The number of bytes read of an incomplete character.
    package private(set) var pending = 0
    /// The number of bytes that an incomplete character still needs.
    package private(set) var missing = 0
    private var value: UInt32 = 0
    /// The allowed range of the next byte, without overlong forms, surrogates and values that are too large.
    private var next: ClosedRange<UInt8> = 0x80...0xBF

    package init() {}

    package mutating func decode(_ byte: UInt8) -> Result {
        guard missing > 0 else { return begin(byte) }
        guard next.contains(byte) else { return .malformed(start: pending) }
        value = value << 6 | UInt32(byte & 0x3F)
        pending += 1
        missing -= 1
        next = 0x80...0xBF
        guard missing == 0 else { return .incomplete }
        let length = pending
        pending = 0
        return Unicode.Scalar(value).map { .scalar($0, length: length) } ?? .malformed(start: length - 1)
    }

    private mutating func begin(_ byte: UInt8) -> Result {
        switch byte {
        case 0..<0x80: return .scalar(Unicode.Scalar(byte), length: 1)
        case 0xC2...0xDF: expect(1, byte & 0x1F, 0x80...0xBF)
        case 0xE0: expect(2, byte & 0x0F, 0xA0...0xBF)
        case 0xED: expect(2, byte & 0x0F, 0x80...0x9F)
        case 0xE1...0xEF: expect(2, byte & 0x0F, 0x80...0xBF)
        case 0xF0: expect(3, byte & 0x07, 0x90...0xBF)
        case 0xF1...0xF3: expect(3, byte & 0x07, 0x80...0xBF)
        case 0xF4: expect(3, byte & 0x07, 0x80...0x8F)
        default: return .malformed(start: 0)
        }
        return .incomplete
    }

    private mutating func expect(_ count: Int, _ bits: UInt8, _ range: ClosedRange<UInt8>) {
        missing = count
        value = UInt32(bits)
        next = range
        pending = 1
    }
}
