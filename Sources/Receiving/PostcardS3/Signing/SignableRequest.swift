import PostcardForm

/// The parts of an HTTP request that Signature Version 4 covers.
struct SignableRequest: Sendable {
    var method: String
    /// The host, with its port unless that is the default of the scheme, as in the field `Host`.
    var host: String
    /// The path, not percent-encoded, such as `/bucket/a b`.
    var path: String
    /// The parameters, not percent-encoded. One without a value has an empty one.
    var query: [(name: String, value: String)] = []
    /// The header fields, without `Host`. All of them are signed.
    var headers: [(name: String, value: String)] = []

    /// The path as it is sent.
    var encodedPath: String { Self.encode(path, keeping: UInt8(ascii: "/")) }

    /// The parameters as they are sent, without the question mark.
    var encodedQuery: String {
        query.map { "\(Self.encode($0.name))=\(Self.encode($0.value))" }.joined(separator: "&")
    }

    /// Percent-encodes all but the unreserved characters (RFC 3986 §2.3).
    ///
    /// - Parameter kept: A further character to keep. Defaults to `nil`.
    static func encode(_ text: String, keeping kept: UInt8? = nil) -> String {
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                bytes.append(byte)
            case kept:
                bytes.append(byte)
            default:
                bytes.append(UInt8(ascii: "%"))
                bytes.append(contentsOf: [byte].hexadecimal.uppercased().utf8)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The names of all header fields that are signed, sorted.
    var signedHeaderNames: String { canonicalHeaders.map(\.name).joined(separator: ";") }

    /// The text whose hash is signed.
    func canonicalText(payloadHash: String) -> String {
        let encoded = query.map { (Self.encode($0.name), Self.encode($0.value)) }.sorted { $0 < $1 }
        let headers = canonicalHeaders
        var text = "\(method)\n\(encodedPath)\n"
        text += encoded.map { "\($0.0)=\($0.1)" }.joined(separator: "&") + "\n"
        for header in headers { text += "\(header.name):\(header.value)\n" }
        return text + "\n\(signedHeaderNames)\n\(payloadHash)"
    }

    private var canonicalHeaders: [(name: String, value: String)] {
        var values: [String: [String]] = ["host": [host]]
        for header in headers {
            // Runs of spaces count as one.
            let words = header.value.split(whereSeparator: { $0 == " " || $0 == "\t" })
            values[header.name.lowercased(), default: []].append(words.joined(separator: " "))
        }
        return values.map { ($0.key, $0.value.joined(separator: ",")) }.sorted { $0.0 < $1.0 }
    }
}
