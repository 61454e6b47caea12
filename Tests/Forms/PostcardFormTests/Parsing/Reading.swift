import PostcardForm
import Testing

/// What a parser reports about a body, in any chunks: adjacent bytes are joined.
enum Reading: Equatable, Sendable, CustomStringConvertible {
    case part(name: String, filename: String?, contentType: String?, offset: Int64)
    case content([UInt8])
    case partEnded
    case complete
    case problem(FormProblem.Code, offset: Int64, part: Int?)

    var description: String {
        switch self {
        case .part(let name, let filename, let type, let offset):
            "part \(name) \(filename ?? "-") \(type ?? "-") at \(offset)"
        case .content(let bytes): "content \(String(decoding: bytes, as: UTF8.self).debugDescription)"
        case .partEnded: "end"
        case .complete: "complete"
        case .problem(let code, let offset, let part): "problem \(code) at \(offset) in \(part ?? -1)"
        }
    }

    /// Feeds a body, cut into chunks, to a parser.
    static func all(
        of chunks: some Sequence<ArraySlice<UInt8>>, boundary: String, limits: FormLimits = FormLimits()
    ) -> [Reading] {
        var readings: [Reading] = []
        do throws(FormProblem) {
            var parser = try FormParser(boundary: boundary, limits: limits)
            var length: Int64 = 0
            for chunk in chunks {
                length += Int64(chunk.count)
                var position = 0
                while let event = try parser.nextEvent(in: chunk.span.bytes, at: &position) {
                    readings.append(event, of: chunk, heldBytes: parser.heldBytes)
                }
            }
            try parser.finish()
            #expect(parser.offset == length)
            readings.append(.complete)
        } catch {
            readings.append(.problem(error.code, offset: error.offset, part: error.partIndex))
        }
        return readings
    }

    /// Feeds a body whole and byte by byte, which must give the same result.
    static func all(of body: String, boundary: String = "XX", limits: FormLimits = FormLimits()) -> [Reading] {
        let bytes = Array(body.utf8)
        let whole = all(of: [bytes[...]], boundary: boundary, limits: limits)
        #expect(all(of: bytes.indices.map { bytes[$0...$0] }, boundary: boundary, limits: limits) == whole)
        return whole
    }
}

extension [Reading] {
    fileprivate mutating func append(_ event: FormEvent, of chunk: ArraySlice<UInt8>, heldBytes: [UInt8]) {
        switch event {
        case .partBegan(let header):
            append(
                .part(
                    name: header.name, filename: header.filename, contentType: header.contentType,
                    offset: header.offset))
        case .bytes(.chunk(let range)):
            append(content: chunk[(chunk.startIndex + range.lowerBound)..<(chunk.startIndex + range.upperBound)])
        case .bytes(.held(let range)):
            append(content: heldBytes[range])
        case .partEnded:
            append(.partEnded)
        }
    }

    private mutating func append(content: ArraySlice<UInt8>) {
        if case .content(let before) = last {
            self[count - 1] = .content(before + content)
        } else {
            append(.content(.init(content)))
        }
    }
}

/// A body of lines: every line but the last is ended by CRLF.
func body(_ lines: String...) -> String {
    lines.joined(separator: "\r\n")
}
