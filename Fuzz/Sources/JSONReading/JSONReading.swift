import Inputs

/// Any text is read as JSON or refused at an offset in it; what is read is the same after it was written and read again,
/// its strings are UTF-8, and its texts are safe to compare.
///
/// Input: the text.
@_cdecl("LLVMFuzzerTestOneInput")
public func jsonReading(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = Input(start, count)
    let text = Array(input.rest())
    do {
        let json = try JSON(text, maximumDepth: 64)
        check(json)
        var written: [UInt8] = []
        write(json, into: &written)
        if try JSON(written, maximumDepth: 64) != json { finding("written again, it is another value") }
    } catch {
        if !(0...text.count).contains(error.offset) { finding("\(error) is outside the text") }
    }
    return 0
}

private func check(_ json: JSON) {
    switch json {
    case .null, .bool, .number: break
    case .string(let bytes): check(bytes)
    case .array(let elements): elements.forEach(check)
    case .object(let members):
        for member in members {
            check(member.name)
            check(member.value)
        }
    }
}

private func check(_ bytes: [UInt8]) {
    if String(validating: bytes, as: UTF8.self) == nil { finding("a string is not UTF-8") }
    let text = String(streamSafe: bytes)
    if CombiningMarks.firstExcess(in: text.utf8) != nil { finding("a text is not stream-safe") }
    if CombiningMarks.firstExcess(in: bytes) == nil, !text.utf8.elementsEqual(bytes) { finding("a text was changed") }
}

private func write(_ json: JSON, into text: inout [UInt8]) {
    switch json {
    case .null: text += "null".utf8
    case .bool(let isTrue): text += (isTrue ? "true" : "false").utf8
    case .number(let digits): text += digits
    case .string(let bytes): write(bytes, into: &text)
    case .array(let elements):
        text += "[".utf8
        for (index, element) in elements.enumerated() {
            if index > 0 { text += ",".utf8 }
            write(element, into: &text)
        }
        text += "]".utf8
    case .object(let members):
        text += "{".utf8
        for (index, member) in members.enumerated() {
            if index > 0 { text += ",".utf8 }
            write(member.name, into: &text)
            text += ":".utf8
            write(member.value, into: &text)
        }
        text += "}".utf8
    }
}

/// Writes what must be escaped as `\u` and four digits, and the rest as it is.
private func write(_ string: [UInt8], into text: inout [UInt8]) {
    text += "\"".utf8
    for byte in string {
        if byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
            let digits = String(byte, radix: 16)
            text += ("\\u" + String(repeating: "0", count: 4 - digits.count) + digits).utf8
        } else {
            text.append(byte)
        }
    }
    text += "\"".utf8
}
