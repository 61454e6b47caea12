import Foundation
import PostcardForm
import Testing

/// The problem that a receiver with rules finds in a body in chunks; `nil` if it accepts the body.
func received(_ chunks: some Sequence<ArraySlice<UInt8>>, boundary: String, _ rules: FormRules) -> FormProblem? {
    do throws(FormProblem) {
        var parser = try FormParser(boundary: boundary)
        var checker = FormRuleChecker(rules)
        for chunk in chunks {
            var position = 0
            let bytes = chunk.span.bytes
            while let event = try parser.nextEvent(in: bytes, at: &position) {
                try checker.check(event, in: bytes, readBy: parser)
            }
        }
        try parser.finish()
        try checker.formEnded(at: parser.offset)
        return nil
    } catch {
        return error
    }
}

/// What both sides say of a form, which must be the same whole, byte by byte and cut anywhere.
func verdict(_ form: MultipartForm, _ rules: FormRules) throws -> FormProblem? {
    let layout = try form.layout()
    let body = try layout.reader().readAll(by: 1000)
    let boundary = form.boundary.value
    let whole = received([body[...]], boundary: boundary, rules)
    #expect(received(body.indices.map { body[$0...$0] }, boundary: boundary, rules) == whole, "byte by byte")
    for split in stride(from: 0, through: body.count, by: 7) {
        #expect(received([body[..<split], body[split...]], boundary: boundary, rules) == whole, "split at \(split)")
    }
    #expect(try rules.problems(in: layout).first == whole, "before it is sent")
    return whole
}

/// Beginnings of files.
enum Sample {
    static let png = Data([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + [UInt8](repeating: 1, count: 40))
    static let jpeg = Data([0xFF, 0xD8, 0xFF, 0xE0] + [UInt8](repeating: 2, count: 40))
    static let pdf = Data("%PDF-1.7 and so on, and so on, and so on".utf8)
    static let zip = Data([0x50, 0x4B, 3, 4] + [UInt8](repeating: 3, count: 40))
    static let html = Data("<html><script>alert(1)</script></html>".utf8)
}
