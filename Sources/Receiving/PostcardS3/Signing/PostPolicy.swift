import PostcardFoundation

/// A policy with which a form may be posted to a bucket, and what the form's fields must be ("POST Policy" in the
/// reference of Amazon S3).
struct PostPolicy: Sendable {
    var expires: Date
    /// The fields whose values the policy fixes.
    var fields: [(name: String, value: String)]
    /// The fields whose values have to begin with a text.
    var beginnings: [(name: String, beginning: String)] = []
    /// How many bytes the file may have; `nil` for any number.
    var contentLengths: ClosedRange<Int64>?

    /// The fields of a form that the policy allows, without the file.
    func formFields(signedBy signer: RequestSigner, bucket: String, at date: Date) throws -> [(String, String)] {
        let time = SigningTime(date)
        var fields = fields
        fields.append(("x-amz-algorithm", RequestSigner.algorithm))
        fields.append(("x-amz-credential", signer.credential(at: time)))
        fields.append(("x-amz-date", time.text))
        if let token = signer.credentials.sessionToken { fields.append(("x-amz-security-token", token)) }
        var conditions: [Condition] = [.isEqual("bucket", bucket)]
        conditions += fields.map { .isEqual($0.name, $0.value) }
        conditions += beginnings.map { .begins($0.name, $0.beginning) }
        if let contentLengths { conditions.append(.contentLength(contentLengths)) }
        let document = Document(expiration: expires.formatted(.iso8601), conditions: conditions)
        let policy = try JSONEncoder().encode(document).base64EncodedString()
        return fields + [("policy", policy), ("x-amz-signature", signer.signature(ofPolicy: policy, at: date))]
    }

    private struct Document: Encodable {
        let expiration: String
        let conditions: [Condition]
    }

    private enum Condition: Encodable {
        case isEqual(String, String)
        case begins(String, String)
        case contentLength(ClosedRange<Int64>)

        func encode(to encoder: any Encoder) throws {
            switch self {
            case .isEqual(let name, let value):
                var container = encoder.singleValueContainer()
                try container.encode([name: value])
            case .begins(let name, let beginning):
                var container = encoder.singleValueContainer()
                try container.encode(["starts-with", "$\(name)", beginning])
            case .contentLength(let range):
                var container = encoder.unkeyedContainer()
                try container.encode("content-length-range")
                try container.encode(range.lowerBound)
                try container.encode(range.upperBound)
            }
        }
    }
}
