public import PostcardForm

/// What kind of problem a finding is. ``rawValue`` is stable: scripts may match it.
public enum FindingCode: Sendable, Hashable, CustomStringConvertible {
    /// What the receiver's parser refuses or warns of too.
    case form(FormProblem.Code)
    /// What only the doctor looks for.
    case doctor(DoctorCode)

    /// The code as it stands in JSON and in the reference.
    public var rawValue: String {
        switch self {
        case .form(let code): code.rawValue
        case .doctor(let code): code.rawValue
        }
    }

    /// How much a problem of the kind weighs.
    ///
    /// An error: most receivers refuse the form, or they take it and lose or alter something of it: a part, bytes of
    /// the content, a name. A warning: everything arrives as it was sent. Some receivers refuse it, or something else
    /// may have been meant.
    public var severity: FormProblem.Severity {
        switch self {
        // The parser goes on behind these, and yet a body, a name or a filename is lost.
        case .form(.missingLength), .form(.nameNotUTF8), .form(.extendedFilename): .error
        case .form(let code): code.severity
        case .doctor(let code): code.severity
        }
    }

    public var description: String { rawValue }
}

extension FindingCode: CaseIterable {
    /// Every code that an examination can find, in the order of the reference: the head, the delimiters, the parts,
    /// the whole.
    public static var allCases: [FindingCode] {
        let all =
            FormProblem.Code.allCases.map(FindingCode.form) + DoctorCode.allCases.map(FindingCode.doctor)
        return FindingReference.Topic.allCases.flatMap { topic in
            all.filter { $0.isFound && $0.reference.topic == topic }
        }
    }

    /// Whether an examination can find it: the parser's limits and rules are a receiver's own.
    private var isFound: Bool {
        if case .form(let code) = self { code.reference != nil } else { true }
    }
}

extension FindingCode {
    /// What the reference says of it.
    public var reference: FindingReference {
        switch self {
        case .form(let code): code.reference ?? .ofReceivers(code)
        case .doctor(let code): code.reference
        }
    }
}
