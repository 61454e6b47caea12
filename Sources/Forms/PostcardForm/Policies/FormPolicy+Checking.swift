package import PostcardFoundation

extension FormPolicy {
    /// A form that is posted to an object store, as far as the policy is about it.
    package struct Form: Sendable {
        /// The fields before the file, in their order.
        package var fields: [(name: String, value: String)]
        /// The name of the file, which takes the place of `${filename}` in the key; `nil` if it has none.
        package var filename: String?
        /// The number of bytes of the file; `nil` if it is not known.
        package var fileBytes: Int64?

        package init(fields: [(name: String, value: String)], filename: String?, fileBytes: Int64?) {
            self.fields = fields
            self.filename = filename
            self.fileBytes = fileBytes
        }

        /// The value of the field with the name, in upper or lower case.
        package subscript(name: String) -> String? {
            fields.first { $0.name.utf8.isEqualIgnoringCase(name.utf8) }?.value
        }

        /// The key of the object, with the name of the file.
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

    /// Why the store would refuse a form.
    package enum Violation: Sendable, Hashable {
        /// The policy has ended.
        case expired(at: Date)
        /// The form lacks the field of a condition.
        case missingField(Condition)
        /// The field of a condition has another value.
        case differentField(name: String, value: String, Condition)
        /// No condition is about the field.
        case extraField(name: String)
        /// The file is too small or too large.
        case size(Int64, minimum: Int64, maximum: Int64)
    }

    /// Finds out why the store would refuse a form, in the order in which it should be fixed.
    ///
    /// - Parameters:
    ///   - form: The form.
    ///   - now: The time; `nil` to leave the expiration out.
    package func violations(by form: Form, at now: Date?) -> [Violation] {
        var violations: [Violation] = []
        if let now, now >= expires { violations.append(.expired(at: expires)) }
        // Both may be many, so they are not searched for each other.
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

    /// Whether a form may have the field.
    package func allows(_ field: String) -> Bool { Self.isExempt(field) || names(field) }

    /// A name to compare, in which the case of letters does not matter.
    private static func lowercased(_ name: String) -> [UInt8] { name.utf8.map { $0.asciiLowercased } }

    private func violation(of condition: Condition, by form: Form, _ values: [[UInt8]: String]) -> Violation? {
        if case .contentLength(let minimum, let maximum) = condition {
            guard let bytes = form.fileBytes, bytes < minimum || bytes > maximum else { return nil }
            return .size(bytes, minimum: minimum, maximum: maximum)
        }
        // The store knows its bucket by the address.
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

    /// A `Content-Type` with commas is a list, each element of which must begin with the text.
    private static func values(of field: String, _ value: String) -> [Substring.UTF8View] {
        guard field.utf8.isEqualIgnoringCase("content-type"), value.utf8.contains(UInt8(ascii: ",")) else {
            return [value.utf8[...]]
        }
        return value.utf8.split(separator: UInt8(ascii: ",")).map { $0.drop { $0 == .space } }
    }

    /// Whether a policy need not name the field: what signs the policy, the policy itself, and what the store ignores.
    private static func isExempt(_ field: String) -> Bool {
        let names = ["policy", "x-amz-signature", "signature", "awsaccesskeyid", "file"]
        return names.contains(where: field.utf8.isEqualIgnoringCase)
            || field.utf8.prefix(9).isEqualIgnoringCase("x-ignore-")
    }
}

// MARK: - For people

extension FormPolicy.Violation {
    /// Which condition the form breaks, in a sentence.
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

    /// What to do, in a sentence.
    package var fix: String {
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
    /// What the condition demands, as the object of a sentence.
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
