package import PostcardFoundation

/// The signed policy of a form for an object store ("POST Policy" in the reference of Amazon S3): the time until which
/// the store accepts the form, and conditions for its fields.
package struct FormPolicy: Sendable, Hashable {
    package let expires: Date
    /// The conditions for the form, in the order of the policy.
    package let conditions: [Condition]

    /// A condition of the policy. Field names are without the dollar sign.
    package enum Condition: Sendable, Hashable {
        case equals(field: String, value: String)
        /// A field must begin with this text, which may be empty.
        case begins(field: String, text: String)
        /// The size of the file must be in this range, in bytes.
        case contentLength(minimum: Int64, maximum: Int64)
        /// A condition of an unknown kind, perhaps for a field.
        case other(field: String?)

        package var field: String? {
            switch self {
            case .equals(let field, _), .begins(let field, _): field
            case .contentLength: nil
            case .other(let field): field
            }
        }
    }

    /// The maximum number of conditions, more than fit in the 20 KB of fields before the file that Amazon S3 accepts.
    private static let maximumConditions = 3000

    /// Parses the value of the field `policy`, which is JSON in base64. Throws ``FormPolicyError`` for any other value.
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

    /// The minimum and maximum size of the file, in bytes; `nil` if no condition limits the size.
    package var contentLengths: (minimum: Int64, maximum: Int64)? {
        conditions.lazy.compactMap { condition in
            if case .contentLength(let minimum, let maximum) = condition { (minimum, maximum) } else { nil }
        }.first
    }

    /// Whether a condition names a field, ignoring case.
    package func names(_ field: String) -> Bool {
        conditions.contains { $0.field?.utf8.isEqualIgnoringCase(field.utf8) == true }
    }

    private static let notJSON = FormPolicyError("it is not JSON with an expiration and conditions")

    private static func date(_ text: String) -> Date? {
        (try? Date(text, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true)))
            ?? (try? Date(text, strategy: .iso8601))
    }
}

/// The reason why a text is not a policy.
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
    /// The conditions in an element such as `{"acl": "private"}` or `["eq", "$key", "cat.jpg"]`; `nil` if unknown.
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

    /// The text of a JSON string or number.
    private static func scalar(_ json: JSON) -> String? {
        switch json {
        case .string: json.text
        case .number: json.integer.map { String($0) }
        case .bool(let isTrue): String(isTrue)
        case .null, .array, .object: nil
        }
    }
}

extension FormPolicy {
    /// The fields and the file of a form for an object store.
    package struct Form: Sendable {
        /// The fields before the file, in their order.
        package var fields: [(name: String, value: String)]
        /// The name of the file, which replaces `${filename}` in the key; `nil` if the file has no name.
        package var filename: String?
        /// The number of bytes of the file; `nil` if unknown.
        package var fileBytes: Int64?

        package init(fields: [(name: String, value: String)], filename: String?, fileBytes: Int64?) {
            self.fields = fields
            self.filename = filename
            self.fileBytes = fileBytes
        }

        /// The value of the named field, ignoring case.
        package subscript(name: String) -> String? {
            fields.first { $0.name.utf8.isEqualIgnoringCase(name.utf8) }?.value
        }

        /// The key of the object, with `${filename}` replaced by the name of the file.
        package var key: String? {
            let name = filename.map(Self.lastComponent) ?? []
            return self["key"].map {
                String(decoding: Array($0.utf8).replacing(Array("${filename}".utf8), with: name), as: UTF8.self)
            }
        }

        private static func lastComponent(_ path: String) -> [UInt8] {
            path.utf8.split { $0 == .slash || $0 == .backslash }.last.map(Array.init) ?? []
        }
    }

    /// A reason why the store would refuse a form.
    package enum Violation: Sendable, Hashable {
        case expired(at: Date)
        case missingField(Condition)
        case differentField(name: String, value: String, Condition)
        /// The field is not in any condition.
        case extraField(name: String)
        /// The file is too small or too large.
        case size(Int64, minimum: Int64, maximum: Int64)
    }

    /// The reasons why the store would refuse a form, in the order in which to fix them. Without a time, the expiration
    /// is ignored.
    package func violations(by form: Form, at now: Date?) -> [Violation] {
        var violations: [Violation] = []
        if let now, now >= expires { violations.append(.expired(at: expires)) }
        // A dictionary is faster than a search if there are many conditions and fields.
        var values: [[UInt8]: String] = [:]
        for field in form.fields.reversed() { values[Self.lowercased(field.name)] = field.value }
        values[Self.lowercased("key")] = form.key
        for condition in conditions {
            if let violation = violation(of: condition, by: form, values) { violations.append(violation) }
        }
        let named = Set(conditions.compactMap { $0.field }.map(Self.lowercased))
        for field in form.fields where !Self.isExempt(field.name) && !named.contains(Self.lowercased(field.name)) {
            violations.append(.extraField(name: field.name))
        }
        return violations
    }

    package func allows(_ field: String) -> Bool { Self.isExempt(field) || names(field) }

    /// A name in lower case, for comparisons that ignore case.
    private static func lowercased(_ name: String) -> [UInt8] { name.utf8.map { $0.asciiLowercased } }

    private func violation(of condition: Condition, by form: Form, _ values: [[UInt8]: String]) -> Violation? {
        if case .contentLength(let minimum, let maximum) = condition {
            guard let bytes = form.fileBytes, bytes < minimum || bytes > maximum else { return nil }
            return .size(bytes, minimum: minimum, maximum: maximum)
        }
        // A form needs no field for the bucket, because the URL already names the bucket.
        guard let field = condition.field, let value = values[Self.lowercased(field)] else {
            if case .other = condition { return nil }
            return condition.field?.utf8.isEqualIgnoringCase("bucket") == true ? nil : .missingField(condition)
        }
        let isMet =
            switch condition {
            case .equals(_, let expected): value == expected
            case .begins(_, let text): Self.values(of: field, value).allSatisfy { $0.starts(with: text.utf8) }
            case .contentLength, .other: true
            }
        return isMet ? nil : .differentField(name: field, value: value, condition)
    }

    /// The values of a field to compare. A `Content-Type` with commas is a list, in which each element must match.
    private static func values(of field: String, _ value: String) -> [Substring.UTF8View] {
        guard field.utf8.isEqualIgnoringCase("content-type"), value.utf8.contains(UInt8(ascii: ",")) else {
            return [value.utf8[...]]
        }
        return value.utf8.split(separator: UInt8(ascii: ",")).map { $0.drop { $0 == .space } }
    }

    /// Whether a field needs no condition: the policy, the fields of the signature, and fields that the store ignores.
    private static func isExempt(_ field: String) -> Bool {
        let names = ["policy", "x-amz-signature", "signature", "awsaccesskeyid", "file"]
        return names.contains(where: field.utf8.isEqualIgnoringCase)
            || field.utf8.prefix(9).isEqualIgnoringCase("x-ignore-")
    }
}

// MARK: - For people

extension FormPolicy.Violation {
    /// The broken condition, in a sentence.
    package var message: String {
        switch self {
        case .expired(let time): "The policy of the form ended at \(time.formatted(.iso8601))."
        case .missingField(let condition):
            "The policy demands \(condition.demand), and the form has no such field."
        case .differentField(let name, let value, let condition):
            "The field \(name.quoted) is \(value.quoted), and the policy demands \(condition.demand)."
        case .extraField(let name): "No condition of the policy names the field \(name.quoted)."
        case .size(let bytes, let minimum, let maximum):
            "The file has \(bytes) bytes, and the policy accepts \(minimum) to \(maximum)."
        }
    }

    package var advice: String {
        switch self {
        case .expired: "Get a new form from the server that signed this one."
        case .missingField(.equals(let field, let value)):
            "Send the field \(field.quoted) with the value \(value.quoted) before the file."
        case .missingField(let condition): "Send the field \((condition.field ?? "").quoted) before the file."
        case .differentField: "Send another value, or have the server sign a policy that accepts this one."
        case .extraField(let name):
            "Leave the field out, let its name begin with x-ignore-, or add the condition "
                + "\(#"["starts-with", "$\#(name.clipped ?? name[...])", ""]"#) to the policy."
        case .size(let bytes, let minimum, _):
            bytes < minimum
                ? "Check that the file is whole, or have the server sign a policy that accepts smaller ones."
                : "Send a smaller file, or have the server sign a policy that accepts larger ones."
        }
    }
}

extension FormPolicy.Condition {
    /// The demand of the condition, as the object of a sentence.
    fileprivate var demand: String {
        switch self {
        case .equals(let field, let value): "that \(field.quoted) be \(value.quoted)"
        case .begins(let field, ""): "the field \(field.quoted), with any value"
        case .begins(let field, let text): "that \(field.quoted) begin with \(text.quoted)"
        case .contentLength(let minimum, let maximum): "a file of \(minimum) to \(maximum) bytes"
        case .other(let field): "something of \((field ?? "the form").quoted)"
        }
    }
}
