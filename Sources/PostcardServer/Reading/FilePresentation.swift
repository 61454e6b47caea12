import HTTPTypes
import PostcardForm

/// How a file of a stranger is shown to a browser.
struct FilePresentation {
    let contentType: String
    let contentDisposition: String

    init(_ file: UploadRecord.File) {
        let type = Self.safeType(file.contentType)
        contentType = type
        let essence = type.prefix { $0 != ";" && $0 != " " }.lowercased()
        let disposition = Self.shownTypes.contains(essence) ? "inline" : "attachment"
        contentDisposition = disposition + Self.parameters(filename: file.filename)
    }

    /// Types that a browser shows without running anything in them. All others are offered for saving.
    private static let shownTypes: Set<String> = [
        "image/jpeg", "image/png", "image/gif", "image/webp", "image/avif", "image/heic", "image/heif", "image/bmp",
        "text/plain",
    ]

    /// The sender's type, where it is one.
    private static func safeType(_ text: String) -> String {
        guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }), let type = try? MediaType(text) else {
            return MediaType.octetStream.value
        }
        return type.value
    }

    /// The sender's filename, in ASCII for old clients and in full for all others (RFC 6266 §4.3, RFC 8187 §3.2).
    private static func parameters(filename: String) -> String {
        guard !filename.isEmpty else { return "" }
        var plain = ""
        var encoded = ""
        let digits = Array("0123456789ABCDEF")
        for byte in filename.utf8 {
            if isAttributeCharacter(byte) {
                encoded.append(Character(Unicode.Scalar(byte)))
            } else {
                encoded.append("%")
                encoded.append(digits[Int(byte >> 4)])
                encoded.append(digits[Int(byte & 15)])
            }
        }
        for character in filename {
            let isPlain =
                character.isASCII && !character.isNewline && !"\"\\%".contains(character)
                && character.asciiValue.map { $0 >= 0x20 && $0 != 0x7F } == true
            plain.append(isPlain ? character : "_")
        }
        return "; filename=\"\(plain)\"; filename*=UTF-8''\(encoded)"
    }

    /// `attr-char` of RFC 8187 §3.2.1.
    private static func isAttributeCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: "!#$&+-.^_`|~".utf8.contains(byte)
        }
    }
}
