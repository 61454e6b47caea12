import HTTPTypes
import PostcardForm

/// The head of a raw HTTP/1.1 request: what it says about the body.
struct RequestHead {
    /// The `Content-Type`; empty where there is none.
    let contentType: String
    let contentLength: Int64?
    let isChunked: Bool

    /// Where the blank line behind a head ends. Lines may end in LF alone: a request that went through an editor
    /// has lost its CRs, and the body is the place to say so.
    ///
    /// - Parameter known: How many of the bytes were searched before.
    static func end(in bytes: [UInt8], from known: Int) -> Int? {
        var index = max(known - 2, 0)
        while let lineFeed = bytes[index...].firstIndex(of: UInt8(ascii: "\n")) {
            let next = bytes[(lineFeed + 1)...].prefix(2)
            if next.first == UInt8(ascii: "\n") { return lineFeed + 2 }
            if next.elementsEqual("\r\n".utf8) { return lineFeed + 3 }
            index = lineFeed + 1
        }
        return nil
    }

    /// - Throws: ``FormProblem`` where the request line or a header field is malformed, or where two receivers could
    ///   find different bodies (RFC 9112 §6.3).
    init(_ bytes: [UInt8]) throws(FormProblem) {
        let lines = bytes.split(separator: UInt8(ascii: "\n")).map { line in
            String(decoding: line.last == UInt8(ascii: "\r") ? line.dropLast() : line, as: UTF8.self)
        }
        guard let requestLine = lines.first, Self.isRequestLine(requestLine) else {
            throw FormProblem(
                .malformedRequest, at: 0, "The input does not begin with a request line.",
                fix: "Give the request as it was sent, or the body alone and its Content-Type with --content-type.")
        }
        var fields: [String: [String]] = [:]
        for line in lines.dropFirst() where !line.isEmpty {
            let (name, value) = try Self.field(line)
            fields[name, default: []].append(value)
        }
        contentType = try Self.single("content-type", of: fields) ?? ""
        contentLength = try Self.contentLength(try Self.single("content-length", of: fields))
        isChunked = try Self.isChunked(fields["transfer-encoding"] ?? [])
        if isChunked, contentLength != nil {
            throw FormProblem(
                .malformedRequest, at: 0, "The head has both a Content-Length and a Transfer-Encoding.",
                fix: "Send the one or the other; the library that sends the body knows which.")
        }
    }

    private static func field(_ line: String) throws(FormProblem) -> (name: String, value: String) {
        let pieces = line.utf8.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
        guard pieces.count == 2, let name = HTTPField.Name(String(pieces[0]) ?? "") else {
            throw FormProblem(
                .malformedRequest, at: 0, "The line \(line.debugDescription) of the head is no header field.",
                fix: "Write Name: value, with no blank before the colon.")
        }
        var value = pieces[1].drop(while: \.isBlank)
        while value.last?.isBlank == true { value.removeLast() }
        return (name.canonicalName, String(value) ?? "")
    }

    private static func isChunked(_ codings: [String]) throws(FormProblem) -> Bool {
        let codings = codings.joined(separator: ",").lowercased().split(separator: ",").map {
            $0.filter { $0 != " " && $0 != "\t" }
        }
        guard codings.allSatisfy({ $0 == "chunked" }), codings.count <= 1 else {
            throw FormProblem(
                .malformedRequest, at: 0, "The Transfer-Encoding is another than chunked.",
                fix: "Send Transfer-Encoding: chunked, or a Content-Length in its place.")
        }
        return !codings.isEmpty
    }

    private static func isRequestLine(_ line: String) -> Bool {
        let words = line.split(separator: " ", omittingEmptySubsequences: false)
        return words.count == 3 && !words[0].isEmpty && !words[1].isEmpty && words[2].hasPrefix("HTTP/")
    }

    /// The value of a field that may come once.
    private static func single(_ name: String, of fields: [String: [String]]) throws(FormProblem) -> String? {
        let values = fields[name] ?? []
        if values.count > 1 {
            throw FormProblem(
                .malformedRequest, at: 0, "The head has \(values.count) \(name) fields.", fix: "Send it once.")
        }
        return values.first
    }

    private static func contentLength(_ value: String?) throws(FormProblem) -> Int64? {
        guard let value else { return nil }
        guard let length = Int64(value), length >= 0, value.utf8.allSatisfy(\.isDigit) else {
            throw FormProblem(
                .malformedRequest, at: 0, "The Content-Length \(value.debugDescription) is no number of bytes.",
                fix: "Write the number of the body's bytes in decimal digits.")
        }
        return length
    }
}
