import Crypto
import Foundation
import NIOCore
import PostcardForm
import PostcardServer

/// A form that a client sends.
struct Form: Sendable, Hashable {
    /// Tells the form from all others.
    let number: Int
    let files: [[UInt8]]

    init(number: Int, files: [[UInt8]]) {
        self.number = number
        self.files = files
    }

    static func random(number: Int, _ random: inout SeededRandom) -> Form {
        let files = (0..<random.number(0...3)).map { index in
            let size = random.isTrue(0.1) ? 0 : Int(random.time(1...90))
            return (0..<size).map { UInt8(truncatingIfNeeded: number &* 31 &+ index &* 7 &+ $0) }
        }
        return Form(number: number, files: files)
    }

    var fields: [UploadRecord.Field] { [UploadRecord.Field(name: "form", value: "\(number)")] }

    /// The form as a body.
    var bytes: [UInt8] {
        Array("\(number)|\(files.map { "\($0.count)" }.joined(separator: ","))|".utf8) + files.joined()
    }

    /// Reads a body; `nil` if it is none.
    init?(_ bytes: [UInt8]) {
        let words = bytes.split(separator: UInt8(ascii: "|"), maxSplits: 2, omittingEmptySubsequences: false)
        guard words.count == 3, let number = Int(String(decoding: words[0], as: UTF8.self)) else { return nil }
        var content = words[2]
        var files: [[UInt8]] = []
        for text in words[1].split(separator: UInt8(ascii: ",")) {
            guard let count = Int(String(decoding: text, as: UTF8.self)), count <= content.count else { return nil }
            files.append(Array(content.prefix(count)))
            content = content.dropFirst(count)
        }
        guard content.isEmpty else { return nil }
        self.init(number: number, files: files)
    }

    static func hash(_ bytes: some Collection<UInt8>) -> String { SHA256.hash(data: Array(bytes)).hexadecimal }

    /// Whether a record is of this form.
    func matches(_ record: UploadRecord) -> Bool {
        record.fields == fields && record.files.map(\.sha256) == files.map { Self.hash($0) }
    }
}
