import PostcardDoctor
import PostcardForm
import PostcardFoundation
import PostcardServer

/// The problems of a request: why it was refused, and what PostcardDoctor finds in its recorded bytes.
struct Diagnosis {
    private(set) var problems: [RequestDescription.Problem]

    /// How many bytes of the body are shown before and after a problem's byte.
    private static let reach = 96

    /// - Parameter shown: The bytes to show, if they are not those of the request.
    init(of request: RecordedRequest, showing shown: RecordedBody) {
        let found = Self.explanation(of: request)
        // Bytes that were not read are not missing.
        let codes: Set<FormProblem.Code> =
            request.notes.body.isComplete
            ? [] : [.truncated, .missingCloseDelimiter, .truncatedPicture]
        var groups = FindingGroup.groups(of: found?.findings ?? [], leavingOut: codes)
        if groups.isEmpty {
            let counts = request.notes.warningCounts.map { ($0.key, $0.value) }
            groups = FindingGroup.groups(
                of: request.notes.warnings.map { Finding($0) }, counts: Dictionary(uniqueKeysWithValues: counts))
        }
        problems = groups.map { Self.problem($0, in: shown) }
        guard case .refused(let refusal) = request.outcome else { return }
        let isFound = found?.problems.contains { finding in
            !codes.contains(finding.code) && finding.code.rawValue == refusal.code
                && finding.offset == refusal.offset ?? finding.offset
        }
        guard isFound != true else { return }
        // What the parser ran into at the end follows from an error that was found.
        let isExplained =
            Self.consequences.contains(refusal.code) && groups.first.map { $0.finding.severity == .error } == true
        problems.insert(Self.problem(refusal, in: shown), at: isExplained ? problems.count : 0)
    }

    /// The codes of what follows if a receiver does not find the delimiters that were meant.
    private static let consequences = Set(
        [
            FormProblem.Code.preambleTooLarge, .epilogueTooLarge, .delimiterNotFound, .truncated,
            .missingCloseDelimiter,
        ].map(\.rawValue))

    /// The explanation of a refused form.
    private static func explanation(of request: RecordedRequest) -> Explanation? {
        // An append has a piece of a form.
        guard request.method != "PATCH", case .refused = request.outcome, let bytes = request.notes.body.bytes?[...],
            !bytes.isEmpty
        else { return nil }
        var examination = FormExamination(contentType: request.contentType ?? "")
        examination.read(bytes.span.bytes)
        return examination.finish(isWhole: request.notes.body.isComplete ? true : nil)
    }

    private static func problem(_ group: FindingGroup, in body: RecordedBody) -> RequestDescription.Problem {
        let finding = group.finding
        return RequestDescription.Problem(
            code: finding.code.rawValue, severity: finding.severity.rawValue, place: finding.place.rawValue,
            offset: finding.offset, length: finding.length, part: finding.partIndex, message: finding.message,
            fix: finding.fix, reason: finding.reason, swift: finding.swift,
            around: finding.place == .body ? around(finding.offset, in: body) : nil,
            count: 1 + group.repetitions.count, also: places(group.repetitions),
            consequences: group.consequences.map { first, places in
                RequestDescription.Consequence(
                    code: first.code.rawValue, message: first.message, count: places.count, places: Self.places(places))
            }, otherConsequences: group.otherConsequences)
    }

    private static func places(_ places: FindingGroup.Places) -> [RequestDescription.Place] {
        places.first.map { RequestDescription.Place(offset: $0.offset, part: $0.partIndex) }
    }

    private static func problem(_ refusal: UploadProblem, in body: RecordedBody) -> RequestDescription.Problem {
        let code = FormProblem.Code(rawValue: refusal.code)
        return RequestDescription.Problem(
            code: refusal.code, severity: (code?.severity ?? .error).rawValue, place: Finding.Place.body.rawValue,
            offset: refusal.offset, length: 0, part: refusal.partIndex, message: refusal.detail, fix: refusal.advice,
            reason: code?.cause, swift: code?.swift,
            around: refusal.offset.flatMap { around($0, in: body) }, count: 1, also: [], consequences: [],
            otherConsequences: 0)
    }

    private static func around(_ offset: Int64, in body: RecordedBody) -> RequestDescription.Bytes? {
        body.bytes(around: offset, reach: reach).map {
            RequestDescription.Bytes(offset: $0.offset, base64: Data($0.bytes))
        }
    }
}
