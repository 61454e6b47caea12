import PostcardDoctor
import PostcardForm

/// Writes JSON, as `postcard explain --json` does.
struct JSONWriter {
    private(set) var bytes: [UInt8] = []
    /// Whether the next value or member needs a comma before it.
    private var needsComma = false

    mutating func object(_ members: (inout JSONWriter) -> Void) { group(0x7B, 0x7D, members) }
    mutating func array(_ elements: (inout JSONWriter) -> Void) { group(0x5B, 0x5D, elements) }

    private mutating func group(_ open: UInt8, _ close: UInt8, _ body: (inout JSONWriter) -> Void) {
        separate()
        bytes.append(open)
        needsComma = false
        body(&self)
        bytes.append(close)
        needsComma = true
    }

    mutating func name(_ name: StaticString) {
        separate()
        bytes.append(0x22)
        name.withUTF8Buffer { bytes += $0 }
        bytes += [0x22, 0x3A]
        needsComma = false
    }

    mutating func value(_ text: String?) {
        guard let text else { return raw("null") }
        separate()
        bytes.append(0x22)
        let digits = Array("0123456789abcdef".utf8)
        for byte in text.utf8 {
            switch byte {
            case 0x22, 0x5C: bytes += [0x5C, byte]
            case 0..<0x20: bytes += [0x5C, 0x75, 0x30, 0x30, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            default: bytes.append(byte)
            }
        }
        bytes.append(0x22)
        needsComma = true
    }

    mutating func value(_ number: Int64?) { raw(number.map { String($0) } ?? "null") }
    mutating func value(_ number: Int?) { value(number.map { Int64($0) }) }
    mutating func value(_ bool: Bool) { raw(bool ? "true" : "false") }

    private mutating func raw(_ text: String) {
        separate()
        bytes += text.utf8
        needsComma = true
    }

    private mutating func separate() {
        if needsComma { bytes.append(0x2C) }
        needsComma = false
    }
}

extension JSONWriter {
    /// Writes an explanation, with what the input was: as `postcard explain --json` does, and what only the page shows.
    mutating func value(_ explanation: Explanation, format: String, remarks: [String]) {
        object { json in
            json.name("valid")
            json.value(explanation.isValid)
            json.name("boundary")
            json.value(explanation.boundary)
            json.name("partCount")
            json.value(Int64(explanation.partCount))
            json.name("parts")
            json.array { json in for part in explanation.parts { json.value(part) } }
            json.name("problems")
            json.array { json in json.values(explanation.findings) }
            json.name("format")
            json.value(format)
            json.name("remarks")
            json.array { json in for remark in remarks { json.value(remark) } }
            json.name("curl")
            json.value(explanation.curl?.line)
            json.name("page")
            json.details(explanation)
        }
    }

    private mutating func value(_ part: Explanation.Part) {
        object { json in
            json.name("name")
            json.value(part.name)
            json.name("filename")
            json.value(part.filename)
            json.name("contentType")
            json.value(part.contentType)
            json.name("offset")
            json.value(part.offset)
            json.name("size")
            json.value(part.size)
            json.name("sha256")
            json.value(part.sha256)
            json.name("headers")
            json.array { json in
                for field in part.headerFields {
                    json.array { json in
                        json.value(field.name)
                        json.value(field.value)
                    }
                }
            }
        }
    }

    /// Writes findings: a consequence has the index of its cause.
    private mutating func values(_ findings: [Finding]) {
        var index = 0
        for finding in findings {
            let cause = index
            value(finding, cause: nil)
            for consequence in finding.consequences { value(consequence, cause: cause) }
            index += 1 + finding.consequences.count
        }
    }

    /// Writes the members that a finding has wherever it is written.
    mutating func facts(of finding: Finding) {
        name("code")
        value(finding.code.rawValue)
        name("severity")
        value(finding.severity.rawValue)
        name("place")
        value(finding.place.rawValue)
        name("offset")
        value(finding.offset)
        name("length")
        value(finding.length)
        name("message")
        value(finding.message)
        name("fix")
        value(finding.advice)
        name("reason")
        value(finding.reason)
    }

    private mutating func value(_ finding: Finding, cause: Int?) {
        object { json in
            json.facts(of: finding)
            json.name("part")
            json.value(finding.partIndex)
            json.name("swift")
            json.value(finding.swift)
            json.name("cause")
            json.value(cause)
            json.name("consequences")
            json.value(Int64(finding.consequenceCount))
        }
    }
}
