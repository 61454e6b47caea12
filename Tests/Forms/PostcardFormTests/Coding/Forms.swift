import Foundation
import PostcardForm

/// A form as a receiver reads it, from short lines.
extension ReceivedForm {
    /// Writes a body and reads it: `name=value` for a text, `name=@filename:content` for a file.
    init(_ lines: [String]) throws {
        var body = ""
        for line in lines {
            let (name, value) = line.split(at: "=")
            body += "--XX\r\nContent-Disposition: form-data; name=\"\(name)\""
            if value.hasPrefix("@") {
                let (filename, content) = String(value.dropFirst()).split(at: ":")
                body += "; filename=\"\(filename)\"\r\nContent-Type: application/octet-stream\r\n\r\n\(content)\r\n"
            } else {
                body += "\r\n\r\n\(value)\r\n"
            }
        }
        try self.init(contentType: "multipart/form-data; boundary=XX", body: Data("\(body)--XX--\r\n".utf8))
    }

    /// What a receiver reads of a form that is sent.
    init(sent form: MultipartForm) throws {
        try self.init(contentType: form.contentType, body: Data(try form.layout().reader().readAll(by: 4096)))
    }

    /// The parts in the notation that forms are made of here.
    var lines: [String] {
        parts.map { part in
            let filename = part.header.filename.map { "@\($0):" } ?? ""
            return "\(part.header.name)=\(filename)\(part.text ?? "?")"
        }
    }
}

extension String {
    fileprivate func split(at separator: Character) -> (before: String, behind: String) {
        guard let index = firstIndex(of: separator) else { return (self, "") }
        return (String(self[..<index]), String(self[self.index(after: index)...]))
    }
}

extension FormEncoder {
    /// What of a value is on the wire.
    func lines(_ value: some Encodable) throws -> [String] {
        try ReceivedForm(sent: encode(value)).lines
    }
}

extension FormDecoder {
    func decode<Value: Decodable>(_ type: Value.Type, _ lines: String...) throws -> Value {
        try decode(type, from: ReceivedForm(lines))
    }
}
