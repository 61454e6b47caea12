import Foundation
import Inputs
import PostcardForm

/// Any rules are accepted, or refused with a message, and a form breaks them at the same byte however it is cut into
/// chunks.
///
/// Input: the rules' JSON in two short pieces, a body of the boundary `XX`.
@_cdecl("LLVMFuzzerTestOneInput")
public func rules(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = Input(start, count)
    let json = input.shortBytes() + input.shortBytes()
    guard let rules = taken(Data(json)) else { return 0 }
    let body = input.rest()
    let whole = judged([body[...]], by: rules)
    let single = judged(body.indices.map { body[$0...$0] }, by: rules)
    if whole != single {
        finding(
            "whole: \(whole.map(String.init(describing:)) ?? "taken"), cut: \(single.map(String.init(describing:)) ?? "taken")"
        )
    }
    return 0
}

private func taken(_ json: Data) -> FormRules? {
    do {
        return try FormRules(json: json)
    } catch {
        if error.message.isEmpty || error.advice == nil { finding("an error of the rules has no words") }
        return nil
    }
}

/// What is wrong with a body first; `nil` if it is accepted.
private func judged(_ chunks: [ArraySlice<UInt8>], by rules: FormRules) -> FormProblem? {
    var checker = FormRuleChecker(rules)
    do throws(FormProblem) {
        var parser = try FormParser(boundary: "XX")
        for chunk in chunks {
            var position = 0
            while let event = try parser.nextEvent(in: chunk.span.bytes, at: &position) {
                try checker.check(event, in: chunk.span.bytes, readBy: parser)
            }
        }
        try parser.finish()
        try checker.formEnded(at: parser.offset)
        return nil
    } catch {
        return error
    }
}
