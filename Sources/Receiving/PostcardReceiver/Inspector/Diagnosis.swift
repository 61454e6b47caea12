import HTTPTypes
import PostcardDoctor
import PostcardForm
import PostcardFoundation
import PostcardReception
import PostcardServer

/// Explains a refused request: why it was refused, and the problems that PostcardDoctor finds in its body.
struct Diagnosis: Sendable {
    private(set) var problems: [RequestDescription.Problem]
    /// The refusal that the client receives: the parser's problem, or the cause of that problem.
    private(set) var refusal: UploadProblem

    /// The number of bytes shown before and after the byte at which a problem begins.
    static let reach = 96

    /// Makes the diagnosis of a request without a body.
    init(of refusal: UploadProblem) {
        self.refusal = refusal
        problems = [RequestDescription.Problem(refusal)]
    }

    /// Makes the diagnosis of a request with a body, whose secrets must already be masked. The body is only examined if
    /// all its bytes were recorded. Otherwise, the parser's warnings are used.
    init(of refusal: UploadProblem, in body: RecordedBody, contentType: String?, warnings: [FindingGroup]) {
        // Bytes that the receiver did not read are not reported as missing.
        let unread: Set<FormProblem.Code> =
            body.isComplete ? [] : [.delimiterNotFound, .truncated, .missingCloseDelimiter, .truncatedPicture]
        let found = Self.findings(in: body, contentType: contentType)
        var groups = FindingGroup.groups(of: found, leavingOut: unread)
        if groups.isEmpty { groups = warnings }
        // A form that exceeds a limit of this receiver also exceeds the common defaults, for the same reason.
        if refusal.status == .contentTooLarge { groups.removeAll { $0.finding.code == .overCommonDefaults } }
        self.refusal = refusal
        let code = FormProblem.Code.known(refusal.code.rawValue)
        if let cause = groups.first?.finding, let code, !unread.contains(code), cause.explains(refusal, code) {
            self.refusal = UploadProblem(cause)
        } else if let index = groups.firstIndex(where: { $0.finding.isFound(by: refusal) }) {
            // The problem that the client received is first in the list.
            groups.insert(groups.remove(at: index), at: 0)
        } else {
            problems = [RequestDescription.Problem(refusal)] + groups.map { RequestDescription.Problem($0) }
            return
        }
        problems = groups.map { RequestDescription.Problem($0) }
    }

    private static func findings(in body: RecordedBody, contentType: String?) -> [Finding] {
        guard let bytes = body.bytes, !bytes.isEmpty else { return [] }
        var examination = FormExamination(contentType: contentType ?? "")
        examination.read(bytes.span.bytes)
        return examination.finish(isWhole: body.isComplete ? true : nil).findings
    }

    /// Returns the diagnosis with the final refusal as its first problem, if that refusal has another code.
    func adding(_ refusal: UploadProblem) -> Diagnosis {
        guard refusal.code != self.refusal.code else { return self }
        var diagnosis = self
        diagnosis.refusal = refusal
        diagnosis.problems.insert(RequestDescription.Problem(refusal), at: 0)
        return diagnosis
    }

    var offsets: [Int64] { problems.compactMap { $0.place == Finding.Place.body.rawValue ? $0.offset : nil } }
}

extension Finding {
    /// Whether the finding is the cause of a refusal. A finding is never the cause of a refusal because of limits or
    /// rules.
    fileprivate func explains(_ refusal: UploadProblem, _ code: FormProblem.Code) -> Bool {
        // Too many combining marks explain no other refusal, because the parser refuses them before other text.
        guard refusal.status == .badRequest, severity == .error, code != .tooManyCombiningMarks else { return false }
        if place == .head || Self.consequencesOfDelimiters.contains(code) { return true }
        return refusal.offset.map { offset <= $0 } ?? true
    }

    /// The codes of the problems that occur if the receiver cannot find the form's delimiters.
    private static let consequencesOfDelimiters: Set<FormProblem.Code> = [
        .preambleTooLarge, .delimiterNotFound, .truncated, .missingCloseDelimiter,
    ]

    fileprivate func isFound(by refusal: UploadProblem) -> Bool {
        code.rawValue == refusal.code.rawValue && offset == refusal.offset ?? offset
    }
}

extension UploadProblem {
    fileprivate init(_ cause: Finding) {
        self.init(status: .badRequest, code: Code(cause.code), message: cause.message, advice: cause.advice)
        offset = cause.place == .body ? cause.offset : nil
        partIndex = cause.partIndex
    }
}

extension RequestDescription.Problem {
    init(_ group: FindingGroup) {
        let finding = group.finding
        self.init(
            code: finding.code.rawValue, severity: finding.severity.rawValue, place: finding.place.rawValue,
            offset: finding.offset, length: finding.length, part: finding.partIndex, message: finding.message,
            fix: finding.advice, reason: finding.reason, swift: finding.swift,
            count: 1 + group.repetitions.count, also: Self.places(group.repetitions),
            consequences: group.consequences.map { first, places in
                RequestDescription.Consequence(
                    code: first.code.rawValue, message: first.message, count: places.count, places: Self.places(places))
            }, otherConsequences: group.otherConsequences)
    }

    private static func places(_ places: FindingGroup.Places) -> [RequestDescription.Place] {
        places.first.map { RequestDescription.Place(offset: $0.offset, part: $0.partIndex) }
    }

    init(_ refusal: UploadProblem) {
        let code = FormProblem.Code.known(refusal.code.rawValue)
        self.init(
            code: refusal.code.rawValue, severity: (code?.severity ?? .error).rawValue,
            place: Finding.Place.body.rawValue,
            offset: refusal.offset, length: 0, part: refusal.partIndex, message: refusal.message, fix: refusal.advice,
            reason: code?.cause, swift: code?.swift, count: 1, also: [], consequences: [], otherConsequences: 0)
    }

    /// Returns the problem with the bytes around it, if they were recorded.
    func showing(_ body: RecordedBody) -> Self {
        var problem = self
        if place == Finding.Place.body.rawValue, let offset {
            problem.around = body.bytes(around: offset, reach: Diagnosis.reach).map {
                RequestDescription.Bytes(offset: $0.offset, base64: Data($0.bytes))
            }
        }
        return problem
    }

    /// The approximate size of the problem in memory, in bytes. Texts that all problems with the same code share are
    /// not counted.
    var bytes: Int {
        consequences.reduce(message.utf8.count + (fix?.utf8.count ?? 0) + 32 * also.count) {
            $0 + $1.message.utf8.count + 32 * $1.places.count
        }
    }
}
