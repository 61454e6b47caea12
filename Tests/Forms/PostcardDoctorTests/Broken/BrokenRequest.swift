import PostcardDoctor
import PostcardForm
import Testing

/// A good request with one thing changed, and the first problem that is to be found in it.
struct BrokenRequest: Sendable, CustomTestStringConvertible {
    let name: String
    let request: SampleRequest
    let code: FormProblem.Code
    let place: Finding.Place
    let offset: Int64
    let part: Int?

    var testDescription: String { name }

    /// Where a problem is expected: at a text of the broken request's head or body.
    struct Place {
        let place: Finding.Place
        let text: [UInt8]
        var number = 1
        var further = 0

        static func head(_ text: String, plus further: Int = 0) -> Place {
            Place(place: .head, text: Array(text.utf8), further: further)
        }

        static func body(_ text: String, _ number: Int = 1, plus further: Int = 0) -> Place {
            Place(place: .body, text: Array(text.utf8), number: number, further: further)
        }

        static func bytes(_ bytes: [UInt8], _ number: Int = 1, plus further: Int = 0) -> Place {
            Place(place: .body, text: bytes, number: number, further: further)
        }

        /// The start or the end of the body.
        static let start = Place(place: .body, text: [])
        static let end = Place(place: .body, text: [], number: 0)
    }

    init(
        _ name: String, _ seed: SampleRequest, _ code: FormProblem.Code, at place: Place, part: Int? = nil,
        _ change: (inout SampleRequest) -> Void
    ) {
        self.name = name
        self.code = code
        self.part = part
        self.place = place.place
        var request = seed
        change(&request)
        self.request = request
        let bytes = place.place == .head ? request.headBytes : request.body
        let found =
            place.number == 0 ? bytes.count : place.text.isEmpty ? 0 : bytes.index(of: place.text, place.number) ?? -1
        offset = Int64(found + place.further)
    }
}

extension [UInt8] {
    /// Where a text begins, the n-th time.
    func index(of text: [UInt8], _ number: Int = 1) -> Int? {
        var left = number
        for index in indices where self[index...].starts(with: text) {
            left -= 1
            if left == 0 { return index }
        }
        return nil
    }
}

extension SampleRequest {
    /// Changes the body at a text, the n-th time that it comes.
    mutating func replace(_ old: String, _ number: Int = 1, with new: String) {
        replace(Array(old.utf8), number, with: Array(new.utf8))
    }

    mutating func replace(_ old: [UInt8], _ number: Int = 1, with new: [UInt8]) {
        guard let index = body.index(of: old, number) else { return body.removeAll() }
        body.replaceSubrange(index..<(index + old.count), with: new)
    }

    mutating func replaceAll(_ old: String, with new: String) {
        let old = Array(old.utf8)
        var result: [UInt8] = []
        var index = 0
        while index < body.count {
            if body[index...].starts(with: old) {
                result += new.utf8
                index += old.count
            } else {
                result.append(body[index])
                index += 1
            }
        }
        body = result
    }

    /// Ends the body before a text.
    mutating func cut(before text: String, _ number: Int = 1, plus further: Int = 0) {
        guard let index = body.index(of: Array(text.utf8), number) else { return body.removeAll() }
        body.removeSubrange((index + further)...)
    }

    mutating func setType(_ value: String) {
        contentType = "Content-Type: \(value)"
    }
}
