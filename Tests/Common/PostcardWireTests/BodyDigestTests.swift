import HTTPTypes
import Testing

@testable import PostcardWire

@Suite struct BodyDigestTests {
    private static let bytes = [UInt8](0..<32)
    private static let text = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

    /// Values of a field, and what they say.
    private static let values: [(value: String?, says: BodyDigest.Announcement)] = [
        (nil, .none), ("", .none), ("sha-512=:AAAA:", .none),
        ("sha-256=:\(text):", BodyDigest(bytes).map { .digest($0) } ?? .none),
        ("sha-256=:\(text.dropLast()):", BodyDigest(bytes).map { .digest($0) } ?? .none),
        ("md5=:AAAA:,  sha-256=:\(text):;a=1", BodyDigest(bytes).map { .digest($0) } ?? .none),
        ("sha-256=:AAAA:, sha-256=:\(text):", BodyDigest(bytes).map { .digest($0) } ?? .none),
        ("sha-256=:AAAA:", .malformed), ("sha-256=::", .malformed), ("sha-256", .malformed), ("sha-256=1", .malformed),
        ("sha-256=:A:", .malformed), ("sha-256=:\(text)", .malformed), ("sha-256=:\(text): x", .malformed),
        ("SHA-256=:\(text):", .malformed), ("=", .malformed),
    ]

    @Test(arguments: values.indices)
    func `a digest is read, or the field is malformed`(row: Int) {
        var fields = HTTPFields()
        fields[.contentDigest] = Self.values[row].value
        #expect(fields.digest(.contentDigest) == Self.values[row].says)
    }

    @Test func `a digest is written as it is read`() throws {
        let digest = try #require(BodyDigest(Self.bytes))
        #expect(digest.fieldValue == "sha-256=:\(Self.text):")
        #expect(
            BodyDigest(hexadecimal: Self.bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()) == digest)
        #expect(BodyDigest(hexadecimal: String(repeating: "g", count: 64)) == nil)
        #expect(BodyDigest(hexadecimal: "00") == nil)
        #expect(BodyDigest(Self.bytes + [0]) == nil)
    }

    @Test(arguments: [
        ("sha-256=10", true), ("sha-512=3, sha-256=1", true), ("sha-256=0", false), ("sha-256", false),
        ("sha-256=11", false),
        ("sha-512=10", false), ("", false),
    ])
    func `a digest is wanted with a preference from 1 to 10`(value: String, isWanted: Bool) {
        #expect(HTTPFields([HTTPField(name: .wantReprDigest, value: value)]).wantsDigest(.wantReprDigest) == isWanted)
    }
}
