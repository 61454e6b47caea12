package import HTTPTypes
import PostcardFoundation

/// The SHA-256 digest of a message's content or of a whole form, for a header field (RFC 9530).
package struct BodyDigest: Sendable, Hashable {
    /// The 32 bytes of the digest.
    package let bytes: [UInt8]

    /// Makes a digest from its bytes. `nil` if there are more or fewer than 32.
    package init?(_ bytes: some Sequence<UInt8>) {
        self.bytes = Array(bytes)
        guard self.bytes.count == 32 else { return nil }
    }

    /// Parses a digest. `nil` if the text is not 64 hexadecimal digits.
    package init?(hexadecimal text: String) {
        let digits = Array(text.utf8)
        guard digits.count == 64, text.allSatisfy(\.isHexDigit) else { return nil }
        var bytes: [UInt8] = []
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let byte = UInt8(String(decoding: digits[index...(index + 1)], as: UTF8.self), radix: 16) else {
                return nil
            }
            bytes.append(byte)
        }
        self.bytes = bytes
    }

    /// The SHA-256 digest in a header field.
    package enum Announcement: Sendable, Hashable {
        /// The field is missing, or has only digests of other algorithms.
        case none
        case digest(BodyDigest)
        /// The field is not a dictionary, or the digest is not 32 bytes.
        case malformed
    }

    /// The key of the SHA-256 algorithm in the dictionary (RFC 9530 §5).
    static let algorithm = "sha-256"

    /// The value of a field that asks for a digest.
    package static let want = "\(algorithm)=10"

    /// The value for a digest field: `sha-256=:…:`.
    package var fieldValue: String { "\(Self.algorithm)=:\(Data(bytes).base64EncodedString()):" }
}

extension HTTPField.Name {
    /// The digest of the content of one message (RFC 9530 §2).
    package static let contentDigest = name("Content-Digest")
    /// The digest of the whole representation (RFC 9530 §3), which here is the whole form.
    package static let reprDigest = name("Repr-Digest")
    /// The field that asks for ``reprDigest`` (RFC 9530 §4).
    package static let wantReprDigest = name("Want-Repr-Digest")
    /// The field that asks for ``contentDigest`` (RFC 9530 §4).
    package static let wantContentDigest = name("Want-Content-Digest")
}

extension HTTPFields {
    /// The SHA-256 digest in ``HTTPTypes/HTTPField/Name/contentDigest`` or ``HTTPTypes/HTTPField/Name/reprDigest``.
    package func digest(_ name: HTTPField.Name) -> BodyDigest.Announcement {
        guard let value = combined(name) else { return .none }
        guard let members = StructuredField.dictionary(value) else { return .malformed }
        switch members[BodyDigest.algorithm] {
        case nil: return .none
        case .bytes(let bytes): return BodyDigest(bytes).map { .digest($0) } ?? .malformed
        default: return .malformed
        }
    }

    /// Whether a field such as `Want-Repr-Digest: sha-256=10` asks for a digest. A preference of 0 means no.
    package func wantsDigest(_ name: HTTPField.Name) -> Bool {
        guard let value = combined(name), let members = StructuredField.dictionary(value),
            case .integer(let preference)? = members[BodyDigest.algorithm]
        else { return false }
        return (1...10).contains(preference)
    }

    package mutating func askForDigests() {
        self[.wantContentDigest] = BodyDigest.want
        self[.wantReprDigest] = BodyDigest.want
    }
}
