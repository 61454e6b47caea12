import Foundation
import PostcardForm
import PostcardFoundation

// A name or a value can be written in ways that a person, or a server, reads as the same.

extension Secrets {
    /// A name as a person reads it: without percent-encoding and escapes of JSON, and without marks and invisible
    /// characters. Letters that look like Latin ones, such as full-width or Cyrillic ones, become those.
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

    /// Undoes `%70` and `\u0070`, also where they are nested; what is no escape stays.
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

    /// Letters of other alphabets, each before the Latin letter that it looks like (Unicode Technical Standard #39).
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

    /// Schemes by which requests authenticate.
    private static let schemes: Set<String> = [
        "bearer", "basic", "digest", "negotiate", "ntlm", "dpop", "hoba", "mutual", "oauth", "gnap", "privatetoken",
        "concealed", "scram-sha-1", "scram-sha-256", "vapid", "hawk", "apikey", "api-key", "token", "signature",
        "sharedkey", "sharedaccesssignature", "aws", "aws4-hmac-sha256",
    ]

    /// Schemes that are also words with which sentences begin.
    private static let wordSchemes: Set<String> = [
        "digest", "negotiate", "mutual", "token", "signature", "concealed", "aws",
    ]

    /// Whether a value begins as that of `Authorization` does, with a scheme and credentials (RFC 9110 §11.4), whatever
    /// its name. The blank between them may be encoded as in a URL or a form.
    static func beginsWithCredentials(_ value: some Collection<UInt8>) -> Bool {
        let start = value.prefix(longestStart).drop { " \t\r\n\"'".utf8.contains($0) }
        let word = start.prefix { byte in
            byte == UInt8(ascii: "-") || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte
                || UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20
        }
        // Most values end with the word, or go on with another character.
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
        // Credentials are one word (token68), or parameters.
        let credentials = rest.prefix { $0 > 0x20 && !"\"'<&".utf8.contains($0) }
        return credentials.endIndex == rest.endIndex || credentials.contains(UInt8(ascii: "="))
            || !" \t".utf8.contains(rest[credentials.endIndex])
    }

    private static let longestStart = 256
}
