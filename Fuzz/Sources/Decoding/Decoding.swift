import Foundation
import Inputs
import PostcardForm

/// Decoding any fields gives a value or an error with a message, and a value is the same after it was encoded and
/// decoded again.
///
/// Input: fields, each a short name and a short value.
@_cdecl("LLVMFuzzerTestOneInput")
public func decoding(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = Input(start, count)
    var form = MultipartForm()
    while !input.isEmpty { form.append(input.text(), named: input.text()) }
    guard let first = try? received(form), let value = decoded(first) else { return 0 }
    guard let again = try? received(MultipartForm(encoding: value)), decoded(again) == value else {
        finding("\(value) is another once it has been encoded and decoded")
    }
    return 0
}

/// Something of every kind.
private struct Sample: Codable, Equatable {
    struct Pet: Codable, Equatable {
        var name: String
        var age: Int8?
        var tags: [String]?
    }

    enum Size: String, Codable, Equatable {
        case small, large
    }

    var text: String?
    var number: Int?
    var isTrue: Bool?
    var date: Date?
    var link: URL?
    var identifier: UUID?
    var size: Size?
    var numbers: [UInt16]?
    var pets: [Pet]?
    var byName: [String: String]?
}

private func received(_ form: MultipartForm) throws -> ReceivedForm {
    let layout = try form.layout()
    var body = Data(count: Int(layout.contentLength ?? 0))
    let reader = try layout.reader()
    let count = try body.withUnsafeMutableBytes { try reader.read(into: $0) }
    return try ReceivedForm(contentType: layout.contentType, body: body.prefix(count))
}

private func decoded(_ form: ReceivedForm) -> Sample? {
    do {
        return try FormDecoder().decode(Sample.self, from: form)
    } catch let error as FormDecodingError {
        if error.message.isEmpty || error.advice == nil { finding("\(error.code) has no words") }
        return nil
    } catch {
        finding("decoding threw \(error)")
    }
}
