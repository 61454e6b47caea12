#if Server
import PostcardDoctor
import PostcardForm

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What was wrong with a request: what it was refused for, and whatever the doctor finds in what is kept of it.
struct Diagnosis {
    let problems: [RequestDescription.Problem]

    /// How much of the body is shown before a problem's byte, and behind it.
    private static let reach = 96

    init(of request: KeptRequest) {
        let findings = Self.findings(in: request)
        var problems = findings.map { Self.problem($0, in: request) }
        if findings.isEmpty { problems = request.notes.warnings.map { Self.problem(UploadProblem($0), in: request) } }
        if case .refused(let refusal) = request.outcome,
            !problems.contains(where: { $0.code == refusal.code && $0.offset == refusal.offset ?? $0.offset })
        {
            problems.insert(Self.problem(refusal, in: request), at: 0)
        }
        self.problems = problems
    }

    /// Root causes, each followed by what comes of it.
    private static func findings(in request: KeptRequest) -> [Finding] {
        let body = request.notes.body
        // A piece of a form is none.
        guard request.method != "PATCH", case .refused = request.outcome, let bytes = body.bytes?[...], !bytes.isEmpty
        else {
            return []
        }
        var examination = FormExamination(contentType: request.contentType ?? "")
        examination.read(bytes.span.bytes)
        let found = examination.finish().problems
        guard !body.isComplete else { return found }
        // What was not read is not missing.
        let ofEnds: Set<FindingCode> = [.form(.truncated), .doctor(.missingCloseDelimiter), .doctor(.truncatedPicture)]
        return found.filter { !ofEnds.contains($0.code) }
    }

    private static func problem(_ finding: Finding, in request: KeptRequest) -> RequestDescription.Problem {
        RequestDescription.Problem(
            code: finding.code.rawValue, severity: finding.severity.rawValue, place: finding.place.rawValue,
            offset: finding.offset, length: finding.length, part: finding.partIndex, message: finding.message,
            fix: finding.fix, reason: finding.reason, swift: finding.swift,
            around: finding.place == .body ? around(finding.offset, in: request) : nil)
    }

    private static func problem(_ refusal: UploadProblem, in request: KeptRequest) -> RequestDescription.Problem {
        let code = FormProblem.Code(rawValue: refusal.code)
        let reference = code.map { FindingCode.form($0).reference }
        return RequestDescription.Problem(
            code: refusal.code, severity: (code?.severity ?? .error).rawValue, place: Finding.Place.body.rawValue,
            offset: refusal.offset, length: 0, part: refusal.partIndex, message: refusal.detail, fix: refusal.fix,
            reason: reference?.cause, swift: reference?.swift,
            around: refusal.offset.flatMap { around($0, in: request) })
    }

    private static func around(_ offset: Int64, in request: KeptRequest) -> RequestDescription.Bytes? {
        request.notes.body.bytes(around: offset, reach: reach).map {
            RequestDescription.Bytes(offset: $0.offset, base64: Data($0.bytes))
        }
    }
}
#endif
