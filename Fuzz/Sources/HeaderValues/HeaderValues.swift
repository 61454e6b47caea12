import Inputs
import PostcardForm

/// Any Content-Type or Content-Disposition is read or refused, and what is read is valid.
///
/// Input: a byte for the header field, its value.
@_cdecl("LLVMFuzzerTestOneInput")
public func headerValues(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = Input(start, count)
    switch input.byte() % 3 {
    case 0: checkContentType(String(decoding: input.rest(), as: UTF8.self))
    case 1: checkHeader(Array("Content-Disposition: ".utf8) + input.rest())
    default: checkHeader(input.rest())
    }
    return 0
}

/// A boundary that is accepted is valid.
private func checkContentType(_ value: String) {
    do {
        let boundary = try FormParser(contentType: value).boundary
        let isPrintable = boundary.utf8.allSatisfy { (0x20..<0x7F).contains($0) }
        if !isPrintable || !(1...Boundary.maximumLength).contains(boundary.utf8.count) {
            finding("the boundary \(boundary.debugDescription) was taken")
        }
        if (try? FormParser(boundary: boundary)) == nil {
            finding("the boundary \(boundary.debugDescription) is taken from a Content-Type and not alone")
        }
    } catch {
        if error.offset != 0 || error.message.isEmpty || error.advice == nil { finding("\(error)") }
    }
}

/// A header that is accepted has a field's name and a filename without a path. A backslash in it was escaped, or ends
/// the filename. The error of a refused one has an offset inside the header.
private func checkHeader(_ lines: [UInt8]) {
    let head = Array("--XX\r\n".utf8)
    let backslash = UInt8(ascii: "\\")
    let isEscaped = zip(lines, lines.dropFirst()).contains { $0 == backslash && $1 == backslash }
    let body = head + lines + Array("\r\n\r\ncontent\r\n--XX--".utf8)
    let readings = Reading.all(of: [body[...]], boundary: "XX", limits: FormLimits())
    for reading in readings {
        switch reading {
        case .part(let name, let filename, _, let offset, let warnings):
            if name.isEmpty { finding("an empty name was taken") }
            if let filename,
                filename.contains(UInt8(ascii: "/")) || filename.dropLast().contains(backslash) && !isEscaped
            {
                finding("a path was taken for a filename: \(String(decoding: filename, as: UTF8.self))")
            }
            if let filename, filename.contains(0) { finding("a filename with a NUL was taken") }
            if name.contains(0) { finding("a name with a NUL was taken") }
            for warning in warnings where !(Int(offset)..<body.count).contains(Int(warning.offset)) {
                finding("\(warning)")
            }
        case .problem(let problem):
            if !(0...body.count).contains(Int(problem.offset)) || problem.advice == nil { finding("\(problem)") }
        case .content, .partEnded, .complete:
            break
        }
    }
}
