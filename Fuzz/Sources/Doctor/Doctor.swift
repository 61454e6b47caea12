import Inputs
import PostcardDoctor
import PostcardForm

/// Any bytes are explained, the same however they are cut. A request without errors is one that the receiver's parser
/// reads, and fixing always ends.
///
/// Input: a byte for the length of the chunks and for whether the body is alone, the request or body.
@_cdecl("LLVMFuzzerTestOneInput")
public func doctor(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = Input(start, count)
    let choice = input.byte()
    let bytes = input.rest()
    let isBody = choice & 1 == 1
    let whole = explanation(of: bytes, isBody: isBody, chunk: max(bytes.count, 1))
    let cut = explanation(of: bytes, isBody: isBody, chunk: Int(choice >> 1) + 1)
    if cut.findings != whole.findings { finding("in pieces:\n\(cut.findings)\nwhole:\n\(whole.findings)") }
    checkPlaces(of: whole, in: bytes, isBody: isBody)
    if isBody { checkAgainstParser(whole, bytes) }
    var fixer = RequestFixer(whole)
    var fixed: [UInt8] = []
    fixer.read(bytes.span.bytes) { piece in piece.withUnsafeBytes { fixed += $0 } }
    fixer.finish { piece in piece.withUnsafeBytes { fixed += $0 } }
    if whole.edits.isEmpty, isBody, fixed != bytes { finding("nothing to fix, and the body changed") }
    return 0
}

private let contentType = "multipart/form-data; boundary=XX"

private func explanation(of bytes: [UInt8], isBody: Bool, chunk: Int) -> Explanation {
    var form = FormExamination(contentType: contentType)
    var request = RequestExamination()
    for start in stride(from: 0, to: bytes.count, by: chunk) {
        let piece = bytes[start..<min(start + chunk, bytes.count)]
        if isBody { form.read(piece.span.bytes) } else { request.read(piece.span.bytes) }
    }
    return isBody ? form.finish() : request.finish()
}

/// A reported offset must exist.
private func checkPlaces(of explanation: Explanation, in bytes: [UInt8], isBody: Bool) {
    // The head of a body that came alone is its Content-Type.
    let headLength = isBody ? contentType.utf8.count : bytes.count
    for problem in explanation.problems {
        let length = problem.place == .head ? headLength : bytes.count
        if !(0...length).contains(Int(problem.offset)) { finding("byte \(problem.offset) of \(length): \(problem)") }
    }
    for edit in explanation.edits {
        let length = edit.place == .head ? headLength : bytes.count
        guard edit.length < 0 || !(0...length).contains(Int(edit.offset)) else { continue }
        finding("an edit of byte \(edit.offset) of \(bytes.count)")
    }
}

private func checkAgainstParser(_ explanation: Explanation, _ body: [UInt8]) {
    var limits = FormLimits()
    limits.maximumPreambleBytes = .max
    limits.maximumEpilogueBytes = .max
    let readings = Reading.all(of: [body[...]], boundary: "XX", limits: limits)
    if case .problem(let problem)? = readings.last {
        if explanation.isValid { finding("valid, and the parser says \(problem)") }
        return
    }
    guard explanation.isValid else { return }
    let names = readings.compactMap { reading in
        if case .part(let name, _, _, _, _) = reading { name } else { nil }
    }
    if names != explanation.parts.map({ Array($0.name.utf8) }) {
        finding("the doctor reads \(explanation.parts.map(\.name)), and the parser \(readings)")
    }
}
