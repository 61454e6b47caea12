public import PostcardForm
import PostcardFoundation

/// Checks a form that is posted to an object store against the policy in the form.
struct PolicyCheck {
    private let parts: [Explanation.Part]
    /// The index of the part with the file; `nil` if there is none.
    private let file: Int?
    /// The indices of the parts before the file. The store ignores all parts after the file.
    private let fields: Range<Int>
    private let policy: Int
    /// The index of the first field with each name, by the name in lower case.
    private let places: [[UInt8]: Int]

    /// Finds the policy. `nil` if no policy, or no signature, is among the fields before the file.
    init?(_ parts: [Explanation.Part]) {
        let file = parts.firstIndex { $0.filename != nil }
        fields = 0..<(file ?? parts.count)
        let names = parts[fields].map { $0.name.utf8 }
        // The name `policy` alone proves nothing: insurance forms have one too. Object stores need a signature.
        guard let policy = names.firstIndex(where: { $0.isEqualIgnoringCase("policy") }),
            names.contains(where: { $0.isEqualIgnoringCase("signature") || $0.isEqualIgnoringCase("x-amz-signature") })
        else { return nil }
        self.parts = parts
        self.file = file
        self.policy = policy
        var places: [[UInt8]: Int] = [:]
        for index in fields.reversed() { places[Self.lowercased(parts[index].name)] = index }
        self.places = places
    }

    /// The problems of the policy, and of the fields and the file that break it. `now` is compared with the expiration
    /// of the policy.
    func findings(at now: Date) -> [Finding] {
        // The text of a policy that is too long was not kept.
        guard let text = parts[policy].text else { return [] }
        let read: FormPolicy
        do throws(FormPolicyError) {
            read = try FormPolicy(base64: text)
        } catch {
            return [finding(.malformedPolicy, in: policy, "\(error)")]
        }
        let form = FormPolicy.Form(
            fields: fields.map { (parts[$0].name, parts[$0].text ?? "") },
            filename: file.flatMap { parts[$0].filename }, fileBytes: file.map { parts[$0].size })
        return read.violations(by: form, at: now).compactMap { violation -> Finding? in
            switch violation {
            case .expired: finding(.expiredPolicy, in: policy, violation.message, advice: violation.advice)
            case .missingField: finding(.missingPolicyField, in: policy, violation.message, advice: violation.advice)
            case .differentField(let name, _, _):
                isKnown(name)
                    ? finding(.policyMismatch, in: part(named: name), violation.message, advice: violation.advice) : nil
            case .extraField(let name):
                finding(.fieldOutsidePolicy, in: part(named: name), violation.message, advice: violation.advice)
            case .size: finding(.sizeOutsidePolicy, in: file ?? policy, violation.message, advice: violation.advice)
            }
        }
    }

    private func finding(_ code: FormProblem.Code, in part: Int, _ message: String, advice: String? = nil) -> Finding {
        Finding(code, at: parts[part].offset, part: part, message, advice: advice)
    }

    private func part(named name: String) -> Int {
        places[Self.lowercased(name)] ?? policy
    }

    private static func lowercased(_ name: String) -> [UInt8] { name.utf8.map { $0.asciiLowercased } }

    /// Whether the value of the named field was kept, because it is short and in UTF-8.
    private func isKnown(_ name: String) -> Bool { parts[part(named: name)].text != nil }
}

extension FormProblem.Code {
    /// The codes about the policy of a form for an object store, in the order of the documentation's page.
    static let ofPolicies: [Self] = [
        .malformedPolicy, .expiredPolicy, .missingPolicyField, .policyMismatch, .fieldOutsidePolicy, .sizeOutsidePolicy,
    ]

    /// The field `policy` cannot be read.
    public static let malformedPolicy = Self(
        "malformed-policy", .whole, "The policy cannot be read",
        cause: "An object store accepts a signed form only with a policy: JSON with an expiration and conditions, in "
            + "Base64.",
        example: #"name="policy"\r\n\r\n{"expiration": …}"#,
        advice: "Send the policy in Base64, exactly as it was signed.")

    /// The policy has already expired.
    public static let expiredPolicy = Self(
        "expired-policy", severity: .warning, .whole, "The policy has expired",
        cause:
            "After its expiration an object store answers 403 AccessDenied. A recorded request may have been in time.",
        example: #"{"expiration": "2015-12-30T12:00:00Z", …}"#,
        advice: "Get a new form from the server that signed this one.",
        swift: "try await client.upload(form, with: presigned) { try await api.newForm() }")

    /// A condition of the policy is about a field that is missing in the form.
    public static let missingPolicyField = Self(
        "missing-policy-field", .whole, "A field that the policy demands is missing",
        cause:
            "Each condition must be met, also one that accepts any value. Content-Type is often forgotten: the store "
            + "wants it as a field, not in the file's header.",
        example: #"["starts-with", "$Content-Type", "image/"], and no field Content-Type"#,
        advice: "Send the field before the file.", swift: "try await client.upload(form, with: presigned)")

    /// The value of a field breaks a condition of the policy.
    public static let policyMismatch = Self(
        "policy-mismatch", .whole, "A field breaks a condition of the policy",
        cause: "An object store compares each field with the signed policy, and refuses the form if one differs.",
        example: #"["starts-with", "$key", "photos/"], and the key cat.jpg"#,
        advice: "Send another value, or have the server sign a policy that accepts this one.")

    /// No condition of the policy names this field of the form.
    public static let fieldOutsidePolicy = Self(
        "field-outside-policy", .whole, "No condition of the policy names a field",
        cause: "Amazon S3 refuses fields that the policy does not name, except those that begin with x-ignore-.",
        example: #"name="title", and no condition about $title"#,
        advice: "Leave the field out, or add a condition for it to the policy.")

    /// The file is smaller or larger than the policy accepts.
    public static let sizeOutsidePolicy = Self(
        "size-outside-policy", .whole, "The file's size is outside of the policy's range",
        cause:
            "The policy has a content-length-range, and the store refuses a file that is smaller or larger, after it "
            + "was sent.",
        example: #"["content-length-range", 1, 1048576], and a file of 3 MB"#,
        advice: "Send a file of another size, or have the server sign another range.")
}
