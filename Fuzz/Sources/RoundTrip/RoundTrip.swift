import Inputs
import PostcardForm

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Parsing an encoded form gives the form again, and its length and its offsets are those of the layout.
///
/// Input: the boundary, and then for each part a byte for its kind, its name, its filename and its content, each text
/// with its length in a byte before it.
@_cdecl("LLVMFuzzerTestOneInput")
public func roundTrip(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = Input(start, count)
    guard let boundary = try? Boundary(input.text()) else { return -1 }
    var form = MultipartForm(boundary: boundary)
    while !input.isEmpty {
        guard let part = part(from: &input) else { return -1 }
        form.append(part)
    }
    guard let layout = try? form.layout() else { return checkRefusal(of: form) }
    let body = bytes(of: layout, from: 0)
    if layout.contentLength != Int64(body.count) { finding("\(body.count) bytes, not \(layout.contentLength ?? -1)") }
    for offset in stride(from: 0, through: body.count, by: max(1, body.count / 7))
    where bytes(of: layout, from: offset) != Array(body[offset...]) {
        finding("other bytes from offset \(offset)")
    }
    let readings = Reading.all(of: [body[...]], boundary: boundary.value, limits: FormLimits())
    let expected = expectedReadings(of: form, layout)
    if meanings(of: readings) != meanings(of: expected) { finding("read:\n\(readings)\nsent:\n\(expected)") }
    return 0
}

private func part(from input: inout Input) -> FormPart? {
    let kind = input.byte()
    let name = input.text()
    guard !name.isEmpty, isCarried(name) else { return nil }
    if kind & 1 == 0 {
        return FormPart(name: name, content: .text(input.text()))
    }
    let filename = input.text()
    // A receiver keeps only the last component of a path.
    guard isCarried(filename), !filename.utf8.contains(UInt8(ascii: "/")) else { return nil }
    return FormPart(name: name, filename: filename, content: .bytes(Data(input.shortBytes())), metadata: .asIs)
}

/// Whether a name comes back as it was. The percent sign is not escaped, so some names look the same.
private func isCarried(_ name: String) -> Bool {
    !name.utf8.contains { $0 == 0 || $0 == UInt8(ascii: "%") }
}

/// A layout may be refused only because the boundary is in the content.
private func checkRefusal(of form: MultipartForm) -> CInt {
    let delimiter = Array("\r\n--\(form.boundary.value)".utf8)
    let lineBreak = Array("\r\n".utf8)
    for part in form.parts where (lineBreak + content(of: part)).contains(delimiter) { return 0 }
    finding("a form was refused whose parts do not hold the boundary")
}

private func bytes(of layout: FormLayout, from offset: Int) -> [UInt8] {
    do {
        let reader = try layout.reader(from: Int64(offset))
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1000)
        while true {
            let count = try buffer.withUnsafeMutableBytes { try reader.read(into: $0) }
            if count == 0 { return bytes }
            bytes += buffer[..<count]
        }
    } catch {
        finding("the layout does not give its bytes from \(offset): \(error)")
    }
}

private func expectedReadings(of form: MultipartForm, _ layout: FormLayout) -> [Reading] {
    var readings: [Reading] = []
    for (part, laidOut) in zip(form.parts, layout.parts) {
        readings.append(
            .part(
                name: Array(part.name.utf8), filename: part.filename.map { Array($0.utf8) },
                contentType: laidOut.contentType?.value, offset: 0, warnings: []))
        let content = content(of: part)
        if !content.isEmpty { readings.append(.content(content)) }
        readings.append(.partEnded)
    }
    return readings + [.complete]
}

private func content(of part: FormPart) -> [UInt8] {
    switch part.content {
    case .text(let text): Array(text.utf8)
    case .bytes(let bytes): Array(bytes)
    case .file, .stream, .picked: []
    }
}

/// The readings without what the sender did not say.
private func meanings(of readings: [Reading]) -> [Reading] {
    readings.map {
        if case .part(let name, let filename, let contentType, _, _) = $0 {
            .part(name: name, filename: filename, contentType: contentType, offset: 0, warnings: [])
        } else {
            $0
        }
    }
}
