import HTTPTypes

/// Reads the responses on a connection, from its bytes in chunks of any size (RFC 9112).
///
/// Responses are small, so that each chunk reads the unfinished response from its beginning.
struct ResponseReader {
    /// The maximum size of a response, in bytes.
    static let maximumBytes = 1 << 20

    /// Whether the next final response answers HEAD, and so has no content, whatever its fields say.
    var answersHead = false

    private var pending: [UInt8] = []

    /// Reads bytes.
    ///
    /// - Returns: The responses that end in them.
    mutating func read(_ bytes: some Sequence<UInt8>) throws(ConnectionFailure) -> [RawResponse] {
        pending += bytes
        var responses: [RawResponse] = []
        while let response = try next(isEnded: false) { responses.append(response) }
        guard pending.count <= Self.maximumBytes else { throw .tooLarge }
        return responses
    }

    /// Reads the end of the connection, which may be the end of a response.
    mutating func readEnd() throws(ConnectionFailure) -> RawResponse? {
        if let response = try next(isEnded: true) { return response }
        guard pending.isEmpty else { throw .cutResponse }
        return nil
    }

    private mutating func next(isEnded: Bool) throws(ConnectionFailure) -> RawResponse? {
        guard let end = Self.endOfHead(in: pending) else { return nil }
        var response = try Self.head(of: pending[..<end])
        let isBodyless = response.isInterim || response.status == 204 || response.status == 304 || answersHead
        if isBodyless {
            pending.removeFirst(end)
            return response
        }
        let content = pending[end...]
        if let coding = response.fields[.transferEncoding] {
            guard coding.lowercased() == "chunked" else { throw .malformed("Transfer-Encoding: \(coding)") }
            guard let (body, rest) = try Self.dechunk(content) else { return nil }
            response.body = body
            pending = Array(rest)
        } else if let text = response.fields[.contentLength] {
            guard let length = Int(text), length >= 0 else { throw .malformed("Content-Length: \(text)") }
            guard length <= Self.maximumBytes else { throw .tooLarge }
            guard content.count >= length else { return nil }
            response.body = Array(content.prefix(length))
            pending = Array(content.dropFirst(length))
        } else {
            guard isEnded else { return nil }
            response.body = Array(content)
            pending = []
        }
        return response
    }

    private static func endOfHead(in bytes: [UInt8]) -> Int? {
        let mark = Array("\r\n\r\n".utf8)
        return bytes.firstRange(of: mark)?.upperBound
    }

    private static func head(of bytes: ArraySlice<UInt8>) throws(ConnectionFailure) -> RawResponse {
        let lines = bytes.dropLast(4).split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { line in
            String(decoding: line.last == UInt8(ascii: "\r") ? line.dropLast() : line, as: UTF8.self)
        }
        let first = lines.first ?? ""
        let words = first.split(separator: " ", maxSplits: 2)
        guard words.count >= 2, words[0] == "HTTP/1.1" || words[0] == "HTTP/1.0", words[1].utf8.count == 3,
            let status = Int(words[1]), (100..<600).contains(status)
        else { throw .malformed("its first line is '\(first.prefix(80))'") }
        var fields = HTTPFields()
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":"), let name = HTTPField.Name(String(line[..<colon])) else {
                throw .malformed("it has the line '\(line.prefix(80))'")
            }
            let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            fields.append(HTTPField(name: name, value: String(value)))
        }
        let options = fields[values: .connection].joined(separator: ",").lowercased()
        let isKeptAlive = words[0] == "HTTP/1.1" ? !options.contains("close") : options.contains("keep-alive")
        return RawResponse(status: status, fields: fields, isKeptAlive: isKeptAlive)
    }

    /// Reads content in chunks (RFC 9112 §7.1).
    ///
    /// - Returns: The content and the bytes after it; `nil` if its end has not arrived.
    private static func dechunk(
        _ bytes: ArraySlice<UInt8>
    ) throws(ConnectionFailure) -> (body: [UInt8], rest: ArraySlice<UInt8>)? {
        var rest = bytes
        var body: [UInt8] = []
        func line() -> ArraySlice<UInt8>? {
            guard let end = rest.firstRange(of: Array("\r\n".utf8)) else { return nil }
            defer { rest = rest[end.upperBound...] }
            return rest[..<end.lowerBound]
        }
        while let size = line() {
            let digits = String(decoding: size.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: " ") }, as: UTF8.self)
            guard let count = Int(digits, radix: 16), count >= 0 else { throw .malformed("a chunk of size '\(digits)'") }
            guard count <= maximumBytes else { throw .tooLarge }
            if count == 0 {
                // The lines up to an empty one are trailers.
                while let trailer = line() {
                    if trailer.isEmpty { return (body, rest) }
                }
                return nil
            }
            guard rest.count >= count + 2 else { return nil }
            body += rest.prefix(count)
            rest = rest.dropFirst(count + 2)
        }
        return nil
    }
}
