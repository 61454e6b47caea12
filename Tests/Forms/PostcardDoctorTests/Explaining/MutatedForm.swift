import PostcardDoctor
import PostcardTestSupport

/// A form with known parts and some mistakes, all chosen by a seed.
struct MutatedForm: CustomStringConvertible {
    let boundary: String
    let parts: [Part]
    /// The mistakes, each with the part that it is in.
    let mistakes: [(mistake: Mistake, part: Int)]

    struct Part: Equatable {
        let name: String
        let filename: String?
        let content: [UInt8]
    }

    enum Mistake: String, CaseIterable {
        // Delimiters.
        case noDashes, oneDash, threeDashes, blankBefore, blanksBehind, letterBehind, lineFeedBehind
        // Headers.
        case noQuotes, singleQuotes, blanksAroundEquals, noDisposition, attachment, noSemicolon, blankBeforeColon
        case twoDispositions, lineFeedInHeader, badType, lengthField, encodingField, folded
        // Around the content.
        case noBlankLine, lineFeedForBlankLine, noLineBreakAfter, lineFeedAfter
        // The form's end and beginning, and the head.
        case noClose, openClose, oneDashClose, closeWithoutBreak, epilogue, closedTwice, closeWithoutDashes,
            closeOfThree
        case leadingLineBreak, preamble, wrongLength, blankInType, dashesInType, commaInType
    }

    /// The form that a seed chooses, with a number of mistakes.
    init(seed: UInt64, mistakes count: Int) {
        var random = SeededGenerator(seed: seed)
        boundary = ["XX", "----WebKitFormBoundaryabc", "a-b.c_d"].randomElement(using: &random) ?? "XX"
        parts = (0..<Int.random(in: 1...4, using: &random)).map { index in
            let filename = [nil, "cat\(index).bin", "제주\(index).bin"].randomElement(using: &random) ?? nil
            return Part(
                name: ["a", "name", "이름", "pet[0]"].randomElement(using: &random) ?? "a", filename: filename,
                content: Self.content(&random, isFile: filename != nil))
        }
        let range = parts.indices
        mistakes = Mistake.allCases.shuffled(using: &random).prefix(count).map {
            ($0, Int.random(in: range, using: &random))
        }
    }

    private static func content(_ random: inout SeededGenerator, isFile: Bool) -> [UInt8] {
        let size = Int.random(in: 1..<400, using: &random)
        let bytes = (0..<size).map { _ in UInt8.random(in: 0...255, using: &random) }
        let contents: [[UInt8]] =
            [
                Array("hello".utf8), [], bytes, Array("line1\nline2\n".utf8), Array("line1\r\nline2\r\n".utf8),
                Array("--X not".utf8), Array("\r\n\r\n".utf8), Array("\n--\n".utf8), Array("초코초코".utf8),
                Array("Note: buy milk".utf8), Array("a\n\nb".utf8),
            ] + (isFile ? [Picture.jpeg, Picture.png] : [])
        return contents.randomElement(using: &random) ?? []
    }

    var description: String {
        let bytes = String(decoding: request, as: UTF8.self).debugDescription
        return "\(mistakes.map { "\($0.mistake) in part \($0.part)" }): \(bytes)"
    }

    /// Whether the bytes may also come from other parts: a line break may be the content's or the form's.
    var isAmbiguous: Bool {
        mistakes.contains { mistake, part in
            let content = parts[part].content
            switch mistake {
            case .noLineBreakAfter: return content.last == 0x0A
            case .noBlankLine: return content.first == 0x0A || content.first == 0x0D
            default: return false
            }
        }
    }

    private func has(_ mistake: Mistake, in part: Int) -> Bool {
        mistakes.contains { $0.mistake == mistake && $0.part == part }
    }

    private func has(_ mistake: Mistake) -> Bool { mistakes.contains { $0.mistake == mistake } }

    /// The raw request.
    var request: [UInt8] {
        let body = body
        var type = "multipart/form-data; boundary=\(boundary)"
        if has(.blankInType) { type = "multipart/form-data; boundary = \(boundary)" }
        if has(.dashesInType) { type = "multipart/form-data; boundary=--\(boundary)" }
        if has(.commaInType) { type = "multipart/form-data, boundary=\(boundary)" }
        let length = body.count + (has(.wrongLength) ? 5 : 0)
        return Array("POST /u HTTP/1.1\r\nHost: h\r\nContent-Type: \(type)\r\nContent-Length: \(length)\r\n\r\n".utf8)
            + body
    }

    private var body: [UInt8] {
        var body: [UInt8] = []
        if has(.leadingLineBreak) { body += Array("\r\n".utf8) }
        if has(.preamble) { body += Array("preamble\r\n".utf8) }
        for (index, part) in parts.enumerated() {
            body += Array(delimiter(of: index).utf8)
            body += Array(header(of: part, index).utf8)
            if !has(.noBlankLine, in: index) {
                body += Array((has(.lineFeedForBlankLine, in: index) ? "\n" : "\r\n").utf8)
            }
            body += part.content
            if !has(.noLineBreakAfter, in: index) {
                body += Array((has(.lineFeedAfter, in: index) ? "\n" : "\r\n").utf8)
            }
        }
        return body + Array(close.utf8)
    }

    private func delimiter(of part: Int) -> String {
        var dashes = "--"
        if has(.noDashes, in: part) { dashes = "" }
        if has(.oneDash, in: part) { dashes = "-" }
        if has(.threeDashes, in: part) { dashes = "---" }
        let before = has(.blankBefore, in: part) ? " " : ""
        let behind = (has(.blanksBehind, in: part) ? "  " : "") + (has(.letterBehind, in: part) ? "x" : "")
        return before + dashes + boundary + behind + (has(.lineFeedBehind, in: part) ? "\n" : "\r\n")
    }

    private func header(of part: Part, _ index: Int) -> String {
        var line = "Content-Disposition: form-data; name=\"\(part.name)\""
        if has(.noQuotes, in: index) { line = "Content-Disposition: form-data; name=\(part.name)" }
        if has(.singleQuotes, in: index) { line = line.replacing("\"", with: "'") }
        if has(.blanksAroundEquals, in: index) { line = line.replacing("=", with: " = ") }
        if has(.attachment, in: index) { line = line.replacing("form-data", with: "attachment") }
        if has(.noSemicolon, in: index) { line = line.replacing("; name", with: " name") }
        if has(.blankBeforeColon, in: index) { line = line.replacing(":", with: " :") }
        if let filename = part.filename { line += "; filename=\"\(filename)\"" }
        if has(.folded, in: index) { line = line.replacing("; ", with: ";\r\n ") }
        var lines = has(.noDisposition, in: index) ? [] : [line]
        if has(.twoDispositions, in: index) { lines.append(line) }
        if part.filename != nil {
            lines.append("Content-Type: \(has(.badType, in: index) ? "bin" : "application/x-y")")
        }
        if has(.lengthField, in: index) { lines.append("Content-Length: \(part.content.count)") }
        if has(.encodingField, in: index) { lines.append("Content-Transfer-Encoding: binary") }
        return lines.map { $0 + (has(.lineFeedInHeader, in: index) ? "\n" : "\r\n") }.joined()
    }

    private var close: String {
        let close = "--\(boundary)--"
        if has(.noClose) { return "" }
        if has(.openClose) { return "--\(boundary)\r\n" }
        if has(.oneDashClose) { return "--\(boundary)-\r\n" }
        if has(.closeWithoutBreak) { return close }
        if has(.epilogue) { return close + "\r\nepilogue" }
        if has(.closedTwice) { return close + "\r\n" + close + "\r\n" }
        if has(.closeWithoutDashes) { return "\(boundary)--\r\n" }
        if has(.closeOfThree) { return "-" + close + "\r\n" }
        return close + "\r\n"
    }
}
