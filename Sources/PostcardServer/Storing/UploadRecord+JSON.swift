#if Server
import PostcardForm

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension UploadRecord {
    /// The record as JSON in UTF-8, its keys sorted.
    public func json() -> Data {
        // By hand, because a record is written twice for each upload, and the encoder takes longer for that than the
        // form takes to be read.
        var text = JSONText()
        text.append(#"{"fields":["#)
        text.appendList(fields) { text, field in
            text.append(#"{"name":"#, string: field.name)
            text.append(#","value":"#, string: field.value)
            text.append("}")
        }
        text.append(#"],"files":["#)
        text.appendList(files) { text, file in
            text.append(#"{"contentType":"#, string: file.contentType)
            text.append(#","filename":"#, string: file.filename)
            text.append(#","name":"#, string: file.name)
            text.append(#","sha256":"#, string: file.sha256)
            text.append(#","size":\#(file.size),"url":"#, string: file.url)
            text.append("}")
        }
        text.append(#"],"id":"#, string: id.text)
        text.append(#","received":"#, string: received.formatted(.iso8601))
        text.append("}")
        return Data(text.bytes)
    }

    /// Takes a record from its JSON.
    public init(json: Data) throws {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        self = try decoder.decode(UploadRecord.self, from: json)
    }
}

/// JSON as it is being written (RFC 8259).
private struct JSONText {
    private(set) var bytes: [UInt8] = []

    mutating func append(_ text: String) { bytes.append(contentsOf: text.utf8) }

    mutating func append(_ text: String, string: String) {
        append(text)
        bytes.append(UInt8(ascii: "\""))
        for byte in string.utf8 { append(byte) }
        bytes.append(UInt8(ascii: "\""))
    }

    mutating func appendList<Element>(_ elements: [Element], _ append: (inout Self, Element) -> Void) {
        for (index, element) in elements.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            append(&self, element)
        }
    }

    /// A byte of a string (RFC 8259 §7).
    private mutating func append(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
        case 0x08: append(#"\b"#)
        case 0x09: append(#"\t"#)
        case 0x0A: append(#"\n"#)
        case 0x0C: append(#"\f"#)
        case 0x0D: append(#"\r"#)
        case 0..<0x20: append(#"\u00"# + [byte].hexadecimal)
        default: bytes.append(byte)
        }
    }
}
#endif
