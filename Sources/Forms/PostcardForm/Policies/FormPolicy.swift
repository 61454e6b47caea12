package import PostcardFoundation

/// The policy that a server has signed for a form which is posted to an object store ("POST Policy" in the reference of
/// Amazon S3): until when the store accepts the form, and what its fields must be.
package struct FormPolicy: Sendable, Hashable {
    /// When the policy ends.
    package let expires: Date
    /// What the form must be, in the order of the policy.
    package let conditions: [Condition]

    /// One thing that the policy demands of the form. Names of fields are without the dollar sign.
    package enum Condition: Sendable, Hashable {
        /// The field has this value.
        case equals(field: String, value: String)
        /// The field begins with this text, which may be empty.
        case begins(field: String, text: String)
        /// The file has at least and at most this many bytes.
        case contentLength(minimum: Int64, maximum: Int64)
        /// A condition of a kind that is not known, about a field.
        case other(field: String?)

        /// The field that the condition is about.
        package var field: String? {
            switch self {
            case .equals(let field, _), .begins(let field, _): field
            case .contentLength: nil
            case .other(let field): field
            }
        }
    }

    /// More than fit into the 20 KB of fields that Amazon S3 reads before the file.
    private static let maximumConditions = 3000

    /// Reads the value of the field `policy`: JSON in Base64.
    ///
    /// - Throws: ``FormPolicyError`` if it is not a policy.
    package init(base64 text: String) throws(FormPolicyError) {
        guard let json = Data(base64Encoded: text, options: .ignoreUnknownCharacters), !json.isEmpty else {
            throw FormPolicyError("it is not Base64")
        }
        let document = try? JSON(json)
        guard let expiration = document?["expiration"]?.text, let entries = document?["conditions"]?.elements else {
            throw Self.notJSON
        }
        guard let expires = Self.date(expiration) else {
            throw FormPolicyError("its expiration is \(expiration.quoted), not a time such as 2030-01-31T12:00:00Z")
        }
        self.expires = expires
        var conditions: [Condition] = []
        for entry in entries {
            guard let read = Self.conditions(entry) else { throw Self.notJSON }
            conditions += read
        }
        self.conditions = conditions
        guard conditions.count <= Self.maximumConditions else {
            throw FormPolicyError("it has more than \(Self.maximumConditions) conditions")
        }
    }

    /// The number of bytes that the file may have.
    package var contentLengths: (minimum: Int64, maximum: Int64)? {
        conditions.lazy.compactMap { condition in
            if case .contentLength(let minimum, let maximum) = condition { (minimum, maximum) } else { nil }
        }.first
    }

    /// Whether a condition names the field, in upper or lower case.
    package func names(_ field: String) -> Bool {
        conditions.contains { $0.field?.utf8.isEqualIgnoringCase(field.utf8) == true }
    }

    private static let notJSON = FormPolicyError("it is not JSON with an expiration and conditions")

    private static func date(_ text: String) -> Date? {
        (try? Date(text, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true)))
            ?? (try? Date(text, strategy: .iso8601))
    }
}

/// Why a text is not a policy.
package struct FormPolicyError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The reason, as the end of a sentence.
    package let reason: String

    init(_ reason: String) {
        self.reason = reason
    }

    package var description: String { "The field \"policy\" has no policy: \(reason)." }
}

// MARK: - Reading

extension FormPolicy {
    /// The conditions of an element of the list: `{"acl": "private"}` or `["starts-with", "$key", "photos/"]`.
    ///
    /// - Returns: `nil` if it is neither.
    private static func conditions(_ entry: JSON) -> [Condition]? {
        if case .object(let members) = entry {
            let values = members.compactMap { member in scalar(member.value).map { (name: member.name, value: $0) } }
            guard values.count == members.count else { return nil }
            return values.sorted { $0.name.lexicographicallyPrecedes($1.name) }.map {
                .equals(field: String(streamSafe: $0.name), value: $0.value)
            }
        }
        guard let elements = entry.elements else { return nil }
        let words = elements.compactMap(scalar)
        guard words.count == elements.count else { return nil }
        let field = words.dropFirst().first { $0.utf8.first == UInt8(ascii: "$") }
            .flatMap { String($0.utf8.dropFirst()) }
        switch (words.first?.lowercased(), words.count) {
        case ("eq", 3): return [.equals(field: field ?? words[1], value: words[2])]
        case ("starts-with", 3): return [.begins(field: field ?? words[1], text: words[2])]
        case ("content-length-range", 3):
            guard let minimum = Int64(words[1]), let maximum = Int64(words[2]) else { fallthrough }
            return [.contentLength(minimum: minimum, maximum: maximum)]
        default: return [.other(field: field)]
        }
    }

    /// A value, which some programs write as a number.
    private static func scalar(_ json: JSON) -> String? {
        switch json {
        case .string: json.text
        case .number: json.integer.map { String($0) }
        case .bool(let isTrue): String(isTrue)
        case .null, .array, .object: nil
        }
    }
}
