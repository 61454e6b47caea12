import Foundation
import PostcardForm
import PostcardFoundation
import PostcardServer

/// Masks the secrets of a request in logs and in the inspector.
///
/// A value is a secret if its name (of a header field, a parameter or a part) sounds secret, or if it begins like
/// credentials. Names are split into words, so that `X-Api-Key`, `apiKey` and `api_key` are the same. In case of doubt,
/// the value is masked. Values that grant no access stay visible, such as `Idempotency-Key`, `X-Request-Id` or
/// `Sec-WebSocket-Key`.
enum Secrets {
    static let mask = "***"

    /// The most frequent harmless names. They are checked first, because splitting a name into words is slow.
    private static let harmlessNames = [
        "name", "filename", "content-disposition", "content-type", "content-length", "boundary", "host", "user-agent",
        "accept", "accept-encoding", "accept-language", "connection", "transfer-encoding", "expect", "origin", "date",
        "charset",
    ]

    /// Fragments that make a name secret, even inside a word.
    private static let secretPieces = [
        "authoriz", "authenticat", "token", "secret", "password", "passwd", "passwort", "passphrase", "passcode",
        "credential", "cookie", "session", "csrf", "xsrf", "jwt", "dpop", "signature", "apikey", "accesskey", "authkey",
        "privatekey", "signingkey", "encryptionkey", "subscriptionkey", "masterkey", "비밀번호", "암호",
    ].map { Array($0.utf8) }

    /// Words that make a name secret. They must match a whole word: `auth` does not match `author`.
    private static let secretWords = [
        "auth", "oauth", "bearer", "pass", "pwd", "pw", "psw", "pin", "otp", "totp", "psk", "sig", "sas", "hmac", "sid",
        "saml", "assertion", "cvc", "cvv",
    ].map { Array($0.utf8) }

    /// Words that make a following `key` harmless.
    private static let plainKeys: Set<String> = [
        "idempotency", "socket", "websocket", "cache", "surrogate", "sort", "partition", "primary", "foreign", "object",
        "public", "row", "group", "routing", "dedup", "deduplication", "translation",
    ]
    /// Words that make a preceding `key` harmless.
    private static let keyProperties: Set<String> = ["id", "name", "type", "size", "length", "count", "algorithm"]

    /// Words that make a following `code` secret. After other words, such as `zip`, a code is harmless.
    private static let secretCodes: Set<String> = [
        "access", "activation", "backup", "confirmation", "device", "invitation", "invite", "login", "recovery",
        "reset", "security", "sms", "unlock", "verification", "verify",
    ]

    /// Whether values with this name may grant access. The name is that of a header field, a parameter or a part.
    static func isSecret(_ name: some StringProtocol) -> Bool {
        // A longer name counts as secret without a check, because folding combining characters takes quadratic time.
        let count = name.utf8.count
        guard count <= longestName else { return true }
        let isHarmless = harmlessNames.contains { $0.utf8.count == count && name.utf8.isEqualIgnoringCase($0.utf8) }
        if isHarmless { return false }
        let words = NameWords(folded(name))
        if secretPieces.contains(where: { holds(words.joined, $0) }) { return true }
        if words.ranges.contains(where: { word in secretWords.contains { words.joined[word].elementsEqual($0) } }) {
            return true
        }
        guard words.joined.count > 2, holds(words.joined, key) || holds(words.joined, code) else { return false }
        let texts = words.ranges.map { String(decoding: words.joined[$0], as: UTF8.self) }
        return texts == ["key"] || texts == ["code"]
            || texts.indices.dropFirst().contains { index in
                switch texts[index] {
                case "key", "keys":
                    !plainKeys.contains(texts[index - 1])
                        && !(index + 1 < texts.count && keyProperties.contains(texts[index + 1]))
                case "code": secretCodes.contains(texts[index - 1])
                default: false
                }
            }
    }

    private static let longestName = 256
    private static let key = Array("key".utf8)
    private static let code = Array("code".utf8)

    /// The words of a name in lower case. A word ends at a character that is not a letter, and before a capital letter.
    ///
    /// The type works on bytes for speed, because clients may send many names.
    private struct NameWords {
        /// All words, joined without separators.
        private(set) var joined: [UInt8] = []
        private(set) var ranges: [Range<Int>] = []

        /// - Parameter name: The name, after ``Secrets/folded(_:)``.
        init(_ name: String) {
            let bytes = Array(name.utf8)
            var start = 0
            for (index, byte) in bytes.enumerated() {
                let isCapital = Self.isCapital(byte)
                let isNextSmall = index + 1 < bytes.count && Self.isSmall(bytes[index + 1])
                let followsCapital = index > 0 && Self.isCapital(bytes[index - 1])
                let beginsWord = isCapital ? !followsCapital || isNextSmall : !Self.isSmall(byte)
                if beginsWord, start < joined.count {
                    ranges.append(start..<joined.count)
                    start = joined.count
                }
                if isCapital || Self.isSmall(byte) { joined.append(isCapital ? byte | 0x20 : byte) }
            }
            if start < joined.count { ranges.append(start..<joined.count) }
        }

        private static func isCapital(_ byte: UInt8) -> Bool { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) }

        private static func isSmall(_ byte: UInt8) -> Bool {
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || byte >= 0x80
        }
    }

    private static func holds(_ bytes: [UInt8], _ piece: [UInt8]) -> Bool {
        guard bytes.count >= piece.count else { return false }
        return (0...(bytes.count - piece.count)).contains { start in
            bytes[start] == piece[0] && bytes[start..<(start + piece.count)].elementsEqual(piece)
        }
    }
}

// MARK: - Texts

extension Secrets {
    /// The value of a header field, masked if it is a secret. In a URL, only its secrets are masked.
    static func masked(_ value: String, of name: some StringProtocol) -> String {
        if isSecret(name) || beginsWithCredentials(value.utf8) { return mask }
        return name.utf8.isEqualIgnoringCase("host".utf8) ? masked(authority: value) : masked(path: value)
    }

    /// An authority without its user information (RFC 3986 §3.2).
    static func masked(authority: String) -> String {
        guard let sign = authority.utf8.lastIndex(of: UInt8(ascii: "@")) else { return authority }
        return mask + authority[sign...]
    }

    /// Masks user information, values of secret parameters, and paths of unfinished uploads. The text may be a path, a
    /// URL, or any text that contains paths or URLs.
    static func masked(path: String) -> String {
        // Masking a long text takes much time, so only the beginning of the text is kept.
        let mostBytes = 8 << 10
        guard path.utf8.count > mostBytes else { return masked(path, depth: 0) }
        return masked(String(decoding: path.utf8.prefix(mostBytes), as: UTF8.self), depth: 0) + mask
    }

    private static func masked(_ text: String, depth: Int) -> String {
        var masked = ""
        var rest = maskingUserInformation(maskingResumption(text))[...]
        while let equals = rest.utf8.firstIndex(of: UInt8(ascii: "=")) {
            let before = rest[..<equals]
            let separator = before.unicodeScalars.lastIndex(where: separatesParameters)
            let name = separator.map { before[$0...].unicodeScalars.dropFirst() } ?? before.unicodeScalars
            let isSecret = isSecret(decoded(Substring(name)))
            let value = rest.utf8.index(after: equals)
            masked += rest[..<value]
            rest = rest[value...]
            let hasCredentials = beginsWithCredentials(rest.utf8)
            // Credentials may contain blanks, so only `&` or `#` ends them.
            let end =
                hasCredentials
                ? rest.utf8.firstIndex { "&#".utf8.contains($0) } ?? rest.endIndex
                : endOfValue(rest, isSecret: isSecret)
            masked += isSecret || hasCredentials ? mask : maskedAddress(rest[..<end], depth: depth)
            rest = rest[end...]
        }
        return masked + rest
    }

    /// Returns the text with its percent-encoding decoded. A text with an invalid escape is returned unchanged.
    static func decoded(_ text: some StringProtocol) -> String {
        guard text.utf8.contains(UInt8(ascii: "%")) else { return String(text) }
        return text.removingPercentEncoding?.streamSafe ?? String(text)
    }

    // Scalars are faster to compare than characters, and the values of all header fields are searched.
    private static func separatesParameters(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "?", "&", "#", ";", ",", "\"", "'", "<", "(": true
        default: isWhitespace(scalar)
        }
    }

    private static func isWhitespace(_ scalar: Unicode.Scalar) -> Bool {
        scalar.isASCII ? scalar == " " || ("\t"..."\r").contains(scalar) : scalar.properties.isWhitespace
    }

    /// The end of a parameter's value. If the end is ambiguous, a secret ends as late as possible, and any other value
    /// as early as possible.
    private static func endOfValue(_ rest: Substring, isSecret: Bool) -> Substring.Index {
        let quote = UInt8(ascii: "\"")
        if isSecret, rest.utf8.first == quote {
            return rest.utf8.dropFirst().firstIndex(of: quote).map { rest.utf8.index(after: $0) } ?? rest.endIndex
        }
        return rest.unicodeScalars.firstIndex { scalar in
            switch scalar {
            case "&", "#", "\"", "<", ">": true
            case ";", ",", "?": !isSecret
            default: isWhitespace(scalar)
            }
        } ?? rest.endIndex
    }

    /// Masks the secrets in the value of a parameter, which may be a percent-encoded URL with its own parameters.
    private static func maskedAddress(_ value: Substring, depth: Int) -> String {
        let (mostDepth, mostBytes) = (3, 4096)
        guard value.utf8.contains(UInt8(ascii: "%")) else { return String(value) }
        // A value that is too long to check is masked.
        guard value.utf8.count <= mostBytes else { return mask }
        let address = decoded(value)
        guard address != value else { return String(value) }
        guard depth < mostDepth else { return mask }
        return masked(address, depth: depth + 1) == address ? String(value) : mask
    }

    /// Returns the text with its user information masked. User information precedes the host (RFC 3986 §3.2.1).
    private static func maskingUserInformation(_ text: String) -> String {
        guard text.utf8.contains(UInt8(ascii: "@")) else { return text }
        var masked = ""
        var rest = text[...]
        while let slashes = rest.utf8.firstRange(of: "//".utf8) {
            let isAuthority =
                rest.utf8[..<slashes.lowerBound].last == UInt8(ascii: ":") || slashes.lowerBound == text.startIndex
            masked += rest[..<slashes.upperBound]
            rest = rest[slashes.upperBound...]
            guard isAuthority else { continue }
            let authority = rest.unicodeScalars.prefix { !endsAuthority($0) }
            masked += Self.masked(authority: String(authority))
            rest = rest[authority.endIndex...]
        }
        return masked + rest
    }

    private static func endsAuthority(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "/", "?", "#", "\"", "<", ">", "\\": true
        default: isWhitespace(scalar)
        }
    }

    /// Masks the identifier of an unfinished upload, with which anyone can resume or discard the upload.
    private static func maskingResumption(_ path: String) -> String {
        // The values of most header fields are too short to contain an identifier.
        guard path.utf8.count >= ResumptionID.length else { return path }
        let names = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard names.contains(where: isResumption) else { return path }
        return names.map { isResumption($0) ? mask[...] : Substring($0) }.joined(separator: "/")
    }

    private static func isResumption(_ name: Substring.UTF8View) -> Bool {
        name.count >= ResumptionID.length && ResumptionID(Substring(name.prefix { $0 != UInt8(ascii: "?") })) != nil
    }
}

// A name or a value can be written in several ways that a person or a server reads alike.

extension Secrets {
    /// Returns the name as a person reads it: without percent-encoding, JSON escapes, marks and invisible characters.
    /// Letters that look like Latin letters, such as full-width or Cyrillic letters, become Latin letters.
    static func folded(_ name: some StringProtocol) -> String {
        let bytes = unescaped(Array(name.utf8))
        guard bytes.contains(where: { $0 >= 0x80 }) else { return String(decoding: bytes, as: UTF8.self) }
        var letters = String.UnicodeScalarView()
        for scalar in String(streamSafe: bytes).decomposedStringWithCompatibilityMapping.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .nonspacingMark, .enclosingMark, .format: continue
            default: letters.append(lookalikes[scalar] ?? scalar)
            }
        }
        return String(letters).precomposedStringWithCanonicalMapping
    }

    /// Decodes escapes such as `%70` and `\u0070`, even nested ones. Other text is returned unchanged.
    private static func unescaped(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<mostNested {
            guard bytes.contains(where: { $0 == .percent || $0 == .backslash }) else { break }
            var result: [UInt8] = []
            var rest = PercentEncoding.decoded(bytes).bytes[...]
            while let byte = rest.popFirst() {
                if byte == .backslash, rest.first == UInt8(ascii: "u"),
                    let scalar = scalar(of: rest.dropFirst().prefix(4))
                {
                    result += String(scalar).utf8
                    rest = rest.dropFirst(5)
                } else {
                    result.append(byte)
                }
            }
            bytes = result
        }
        return bytes
    }

    private static let mostNested = 3

    private static func scalar(of digits: ArraySlice<UInt8>) -> Unicode.Scalar? {
        let values = digits.compactMap(\.hexadecimalValue)
        return values.count == 4 ? Unicode.Scalar(values.reduce(UInt32(0)) { $0 << 4 | UInt32($1) }) : nil
    }

    /// Non-Latin letters, each with the Latin letter that it resembles (Unicode Technical Standard #39).
    private static let lookalikes: [Unicode.Scalar: Unicode.Scalar] = {
        let pairs =
            "аaсcеeһhіiјjкkмmнhоoрpѕsтtуyхxԁdԛqԝwвbгrАAВBЕEКKМMНHОOРPСCТTУYХXІIЈJЅSԚQԜW"
            + "αaβbεeηnιiκkνvοoρpτtυuχxωwγyΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧX"
            + "ոnսuօoհhցgզqɑaɡgıiøoØOłlŁLđdĐDħhŧt"
            + "ᴀaʙbᴄcᴅdᴇeɢgʜhɪiᴊjᴋkʟlᴍmɴnᴏoᴘpʀrꜱsᴛtᴜuᴠvᴡwʏyᴢz"
        var table: [Unicode.Scalar: Unicode.Scalar] = [:]
        var scalars = pairs.unicodeScalars[...]
        while let letter = scalars.popFirst(), let latin = scalars.popFirst() { table[letter] = latin }
        return table
    }()

    // MARK: - Credentials

    private static let schemes: Set<String> = [
        "bearer", "basic", "digest", "negotiate", "ntlm", "dpop", "hoba", "mutual", "oauth", "gnap", "privatetoken",
        "concealed", "scram-sha-1", "scram-sha-256", "vapid", "hawk", "apikey", "api-key", "token", "signature",
        "sharedkey", "sharedaccesssignature", "aws", "aws4-hmac-sha256",
    ]

    /// Authentication schemes that are also common words at the beginning of sentences.
    private static let wordSchemes: Set<String> = [
        "digest", "negotiate", "mutual", "token", "signature", "concealed", "aws",
    ]

    /// Whether a value begins with a scheme and credentials, like `Authorization` (RFC 9110 §11.4). The blank between
    /// them may be encoded as in a URL or a form.
    static func beginsWithCredentials(_ value: some Collection<UInt8>) -> Bool {
        let start = value.prefix(longestStart).drop { " \t\r\n\"'".utf8.contains($0) }
        let word = start.prefix { $0.isLetterOrDigit || $0 == .dash }
        // In most values, the first word is not followed by a blank.
        guard word.endIndex < start.endIndex, " \t+%".utf8.contains(start[word.endIndex]) else { return false }
        let scheme = String(decoding: word.prefix(32), as: UTF8.self).lowercased()
        guard schemes.contains(scheme) else { return false }
        var rest = Array(start[word.endIndex...])[...]
        let count = rest.count
        while let byte = rest.first {
            if byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") || byte == UInt8(ascii: "+") {
                rest = rest.dropFirst()
            } else if rest.starts(with: "%20".utf8) {
                rest = rest.dropFirst(3)
            } else {
                break
            }
        }
        guard rest.count < count, let first = rest.first, first > 0x20 else { return false }
        guard wordSchemes.contains(scheme) else { return true }
        // Credentials are a single word (token68), or parameters.
        let credentials = rest.prefix { $0 > 0x20 && !"\"'<&".utf8.contains($0) }
        return credentials.endIndex == rest.endIndex || credentials.contains(UInt8(ascii: "="))
            || !" \t".utf8.contains(rest[credentials.endIndex])
    }

    private static let longestStart = 256
}
