import Crypto
package import NIOCore
import PostcardForm
public import PostcardFoundation

extension UploadRecord {
    /// Encodes the record as JSON in UTF-8.
    public func json() -> Data {
        var text = JSONText<Never>()
        write(to: &text)
        return Data(text.bytes)
    }

    /// Encodes the same bytes as ``json()`` without a copy.
    package func jsonBuffer() -> ByteBuffer {
        var buffer = ByteBuffer()
        buffer.reserveCapacity(expectedBytes)
        _ = writeJSON { buffer.writeBytes($0) }
        return buffer
    }

    /// Writes the JSON of the record in pieces, because escapes can make it six times as long as the form's text.
    /// Returns the offsets of the files' objects, and finally the offset after the bracket that ends their list.
    func writeJSON<Failure: Error>(_ write: @escaping ([UInt8]) throws(Failure) -> Void) throws(Failure) -> [Int64] {
        var text = JSONText(passing: write)
        let offsets = try self.write(to: &text)
        try text.finish()
        return offsets
    }

    /// The SHA-256 digest of the JSON, in lower-case hexadecimal.
    package var digest: String {
        var hash = SHA256()
        _ = writeJSON { hash.update(data: $0) }
        return hash.finalize().hexadecimal
    }

    @discardableResult
    private func write<Failure>(to text: inout JSONText<Failure>) throws(Failure) -> [Int64] {
        // JSONEncoder would take longer for a small record than parsing the form.
        try text.append(Self.beginning)
        var separator = ""
        for field in fields {
            try text.append(separator)
            try text.append("{")
            if let bytes = field.bytes {
                try text.append(#""base64":"#, base64: bytes)
                try text.append(",")
            }
            try text.append(#""name":"#, string: field.name)
            try text.append(#","value":"#, string: field.value)
            try text.append("}")
            separator = ","
        }
        try text.append(#"],"files":["#)
        var offsets: [Int64] = []
        separator = ""
        for file in files {
            try text.append(separator)
            offsets.append(text.count)
            try text.append(file.isChosen ? "{" : #"{"chosen":false,"#)
            try text.append(#""contentType":"#, string: file.contentType)
            if let damage = file.damage { try text.append(#","damage":"#, string: damage) }
            if let type = file.detectedType { try text.append(#","detectedType":"#, string: type) }
            try text.append(#","filename":"#, string: file.filename)
            try text.append(#","name":"#, string: file.name)
            if let filename = file.sentFilename { try text.append(#","sentFilename":"#, string: filename) }
            try text.append(#","sha256":"#, string: file.sha256)
            try text.append(#","size":\#(file.size),"url":"#, string: file.url)
            try text.append("}")
            separator = ","
        }
        offsets.append(text.count + 1)
        try text.append(#"],"parts":["#)
        separator = ""
        for part in parts {
            try text.append(separator)
            switch part {
            case .field(let index):
                try text.append(#"{"field":"#)
                try text.append(String(index))
            case .file(let index):
                try text.append(#"{"file":"#)
                try text.append(String(index))
            }
            try text.append("}")
            separator = ","
        }
        try text.append(Self.ending(of: id))
        try text.append(Self.timeStyle.format(received))
        try text.append(#""}"#)
        return offsets
    }

    /// The format of times. It is made once, because a new style looks up its calendar and time zone.
    private static let timeStyle = Date.ISO8601FormatStyle()

    /// The start of the JSON, before the fields.
    static let beginning = #"{"fields":["#

    /// The JSON between the parts and the time.
    static func ending(of id: UploadID) -> String { #"],"id":"\#(id)","received":""# }

    /// An example of a time. All times have this length.
    static let exampleTime = "2026-11-22T12:00:00Z"

    /// Decodes a record.
    ///
    /// - Throws: `DecodingError` if the bytes are not the JSON of a record.
    public init(json: Data) throws {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        self = try decoder.decode(UploadRecord.self, from: json)
    }
}

/// JSON text that is written in pieces, or gathered (RFC 8259).
private struct JSONText<Failure: Error> {
    private(set) var bytes: [UInt8] = []
    private var passedCount: Int64 = 0
    private let pass: (([UInt8]) throws(Failure) -> Void)?

    /// The number of bytes in each piece: enough to be worth a write.
    private static var pieceBytes: Int { 64 << 10 }

    init(passing pass: @escaping ([UInt8]) throws(Failure) -> Void) {
        self.pass = pass
    }

    /// The total number of bytes, in written pieces and in memory.
    var count: Int64 { passedCount + Int64(bytes.count) }

    mutating func append(_ text: String) throws(Failure) {
        bytes.append(contentsOf: text.utf8)
        try passLong()
    }

    mutating func append(_ text: String, string: String) throws(Failure) {
        try append(text)
        bytes.append(UInt8(ascii: "\""))
        var string = string
        var position = 0
        let end = string.utf8.count
        while position < end {
            position = string.withUTF8 { escape($0, from: position) }
            try passLong()
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// Appends bytes in base64, in pieces.
    mutating func append(_ text: String, base64 content: Data) throws(Failure) {
        try append(text + "\"")
        var rest = content[...]
        while !rest.isEmpty {
            // The size is a multiple of three, so that only the last piece is padded.
            let piece = rest.prefix(Self.pieceBytes / 4 * 3)
            try append(piece.base64EncodedString())
            rest = rest.dropFirst(piece.count)
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// Writes the remaining bytes.
    mutating func finish() throws(Failure) {
        try pass?(bytes)
        bytes.removeAll()
    }

    private mutating func passLong() throws(Failure) {
        guard let pass, bytes.count >= Self.pieceBytes else { return }
        try pass(bytes)
        passedCount += Int64(bytes.count)
        bytes.removeAll(keepingCapacity: true)
    }

    /// Escapes a piece of a string (RFC 8259 §7), and returns the index at which the next piece begins. Consecutive
    /// characters without escapes are copied together.
    private mutating func escape(_ text: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
        let end = min(text.count, start + Self.pieceBytes)
        var run = start
        for index in start..<end {
            let byte = text[index]
            guard byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else { continue }
            bytes.append(contentsOf: text[run..<index])
            run = index + 1
            bytes.append(UInt8(ascii: "\\"))
            switch byte {
            case 0x08: bytes.append(UInt8(ascii: "b"))
            case 0x09: bytes.append(UInt8(ascii: "t"))
            case 0x0A: bytes.append(UInt8(ascii: "n"))
            case 0x0C: bytes.append(UInt8(ascii: "f"))
            case 0x0D: bytes.append(UInt8(ascii: "r"))
            case 0..<0x20:
                bytes.append(contentsOf: "u00".utf8)
                bytes.append(UInt8(ascii: "0") + byte >> 4)
                bytes.append(Self.hexadecimalDigit(byte & 15))
            default: bytes.append(byte)
            }
        }
        bytes.append(contentsOf: text[run..<end])
        return end
    }

    private static func hexadecimalDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + (value - 10)
    }
}

extension JSONText where Failure == Never {
    /// Makes JSON text that is gathered in memory.
    init() {
        pass = nil
    }
}
