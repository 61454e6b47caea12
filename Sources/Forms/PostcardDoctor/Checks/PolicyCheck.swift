import PostcardForm
import PostcardFoundation

/// What is wrong with a form that is posted to an object store, by the policy in it.
struct PolicyCheck {
    private let parts: [Explanation.Part]
    /// The file; `nil` if there is none.
    private let file: Int?
    /// The parts before the file, which are all that the store reads.
    private let fields: Range<Int>
    private let policy: Int
    /// The first field of each name, in lower case.
    private let places: [[UInt8]: Int]

    /// - Parameter parts: All parts of the form.
    /// - Returns: `nil` if the form has no policy where an object store reads it.
    init?(_ parts: [Explanation.Part]) {
        let file = parts.firstIndex { $0.filename != nil }
        fields = 0..<(file ?? parts.count)
        let names = parts[fields].map { $0.name.utf8 }
        // Insurers have forms with a policy too.
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

    /// - Parameter now: The time.
    func findings(at now: Date) -> [Finding] {
        // A longer text is not kept.
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
            case .expired: finding(.expiredPolicy, in: policy, violation.message, fix: violation.fix)
            case .missingField: finding(.missingPolicyField, in: policy, violation.message, fix: violation.fix)
            case .differentField(let name, _, _):
                isKnown(name)
                    ? finding(.policyMismatch, in: part(named: name), violation.message, fix: violation.fix) : nil
            case .extraField(let name):
                finding(.fieldOutsidePolicy, in: part(named: name), violation.message, fix: violation.fix)
            case .size: finding(.sizeOutsidePolicy, in: file ?? policy, violation.message, fix: violation.fix)
            }
        }
    }

    private func finding(_ code: FormProblem.Code, in part: Int, _ message: String, fix: String? = nil) -> Finding {
        Finding(code, at: parts[part].offset, part: part, message, fix: fix)
    }

    private func part(named name: String) -> Int {
        places[Self.lowercased(name)] ?? policy
    }

    private static func lowercased(_ name: String) -> [UInt8] { name.utf8.map { $0.asciiLowercased } }

    /// Whether the value of the field was kept: it is short, and in UTF-8.
    private func isKnown(_ name: String) -> Bool { parts[part(named: name)].text != nil }
}
