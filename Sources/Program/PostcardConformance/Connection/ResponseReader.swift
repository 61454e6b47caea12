import HTTPTypes
import PostcardFoundation

/// Parses the responses on a connection (RFC 9112). The bytes arrive in chunks of any size.
struct ResponseReader {
    /// The maximum size of a response's content, in bytes.
    static let maximumBytes = 1 << 20
    /// The maximum size of a response's head, of the lines around a chunk, and of the trailers, in bytes.
    static let maximumHeadBytes = 64 << 10

    private enum State {
        case head
        case content(remaining: Int)
        /// The line before a chunk is next.
        case chunkSize
        case chunk(remaining: Int)
        /// The line break after a chunk is next.
        case chunkEnd
        /// The lines after the last chunk are next.
        case trailers
        case contentUntilEnd
    }

    /// Whether the next final response belongs to HEAD, and therefore has no content.
    var respondsToHead = false

    private var state = State.head
    private var lines: [String] = []
    private var lineBytes = 0
    private var response: RawResponse?
    private var body: [UInt8] = []
    private var pending: [UInt8] = []
    private var position = 0
    /// The index of the first byte that has not been searched for a line break.
    private var searched = 0

    /// Reads bytes. Returns the responses that these bytes complete.
    mutating func read(_ bytes: some Sequence<UInt8>) throws(ConnectionFailure) -> [RawResponse] {
        pending.removeFirst(position)
        searched -= position
        position = 0
        pending += bytes
        var responses: [RawResponse] = []
        while let response = try next() { responses.append(response) }
        return responses
    }

    /// Handles the end of the connection, which may complete a response.
    mutating func readEnd() throws(ConnectionFailure) -> RawResponse? {
        if case .contentUntilEnd = state { return finish() }
        guard response == nil, lines.isEmpty, position == pending.count else { throw .cutResponse }
        return nil
    }

    private mutating func next() throws(ConnectionFailure) -> RawResponse? {
        while true {
            switch state {
            case .head:
                guard let line = try takeLine() else { return nil }
                guard line.isEmpty else {
                    lines.append(line)
                    continue
                }
                guard !lines.isEmpty else { continue }
                let response = try Self.response(lines)
                (lines, lineBytes) = ([], 0)
                state = try content(of: response)
                self.response = response
            case .content(let remaining), .chunk(let remaining):
                let taken = pending[position...].prefix(remaining)
                try append(taken)
                guard taken.count < remaining else {
                    if case .content = state { return finish() }
                    state = .chunkEnd
                    continue
                }
                let left = remaining - taken.count
                state = if case .content = state { .content(remaining: left) } else { .chunk(remaining: left) }
                return nil
            case .chunkSize:
                guard let line = try takeLine() else { return nil }
                let digits = line.prefix { $0 != ";" && $0 != " " }
                guard let count = Int(digits, radix: 16), count >= 0 else {
                    throw .malformed("a chunk of size '\(digits.prefix(80))'")
                }
                state = count == 0 ? .trailers : .chunk(remaining: count)
            case .chunkEnd:
                guard let line = try takeLine() else { return nil }
                guard line.isEmpty else { throw .malformed("a chunk that is longer than its size") }
                state = .chunkSize
            case .trailers:
                guard let line = try takeLine() else { return nil }
                if line.isEmpty { return finish() }
            case .contentUntilEnd:
                try append(pending[position...])
                return nil
            }
        }
    }

    private mutating func append(_ bytes: ArraySlice<UInt8>) throws(ConnectionFailure) {
        guard body.count + bytes.count <= Self.maximumBytes else { throw .tooLarge }
        body += bytes
        position += bytes.count
    }

    private mutating func finish() -> RawResponse? {
        defer { (state, response, body, lineBytes) = (.head, nil, [], 0) }
        response?.body = body
        return response
    }

    /// Takes the next line without its line break; `nil` if the line is incomplete.
    private mutating func takeLine() throws(ConnectionFailure) -> String? {
        let start = max(position, searched)
        guard let end = pending[start...].firstIndex(of: UInt8(ascii: "\n")) else {
            searched = pending.count
            guard lineBytes + pending.count - position <= Self.maximumHeadBytes else { throw tooManyLines }
            return nil
        }
        var line = pending[position..<end]
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        lineBytes += end + 1 - position
        guard lineBytes <= Self.maximumHeadBytes else { throw tooManyLines }
        position = end + 1
        return String(streamSafe: line)
    }

    /// The failure for a head, or for lines around chunks, that exceed the maximum size.
    private var tooManyLines: ConnectionFailure {
        if case .head = state { .tooLargeHead } else { .tooLargeLines }
    }

    /// The framing of a response's content (RFC 9112 §6.3).
    private func content(of response: RawResponse) throws(ConnectionFailure) -> State {
        if response.isInterim || response.status == 204 || response.status == 304 || respondsToHead {
            return .content(remaining: 0)
        }
        if let coding = response.fields[.transferEncoding] {
            guard coding.lowercased() == "chunked" else { throw .malformed("Transfer-Encoding: \(coding.prefix(80))") }
            return .chunkSize
        }
        guard let text = response.fields[.contentLength] else { return .contentUntilEnd }
        guard let length = Int(text), length >= 0 else { throw .malformed("Content-Length: \(text.prefix(80))") }
        guard length <= Self.maximumBytes else { throw .tooLarge }
        return .content(remaining: length)
    }

    private static func response(_ lines: [String]) throws(ConnectionFailure) -> RawResponse {
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
}

/// An interim or final response, as it was received.
struct RawResponse: Sendable {
    let status: Int
    let fields: HTTPFields
    /// The content, without transfer codings.
    var body: [UInt8] = []
    /// Whether the server keeps the connection open after the response (RFC 9112 §9.3).
    let isKeptAlive: Bool

    /// Whether the response is informational (RFC 9110 §15.2), so that another response follows.
    var isInterim: Bool { (100..<200).contains(status) }

    var isSuccess: Bool { (200..<300).contains(status) }

    /// The approximate memory of the response, in bytes. Each field needs some memory in addition to its text.
    var memoryBytes: Int {
        fields.reduce(body.count) { $0 + $1.name.rawName.utf8.count + $1.value.utf8.count + 128 }
    }
}

/// The reason why a connection has no further responses.
package struct ConnectionFailure: Error, Sendable, Hashable, CustomStringConvertible {
    package let description: String

    init(_ description: String) {
        self.description = description
    }

    static let closed = ConnectionFailure("the connection was closed without a response")
    static let cutResponse = ConnectionFailure("the connection was closed within a response")
    static let tooMany = ConnectionFailure(
        "more than \(ResponseInbox.maximumResponses) responses on a connection")
    static let tooManyBytes = ConnectionFailure(
        "more than \(ResponseInbox.maximumBytes >> 20) MiB of unread responses on a connection")
    static let tooLarge = ConnectionFailure(
        "the content of the response is larger than \(ResponseReader.maximumBytes >> 20) MiB")
    static let tooLargeHead = ConnectionFailure(
        "the head of the response is larger than \(ResponseReader.maximumHeadBytes >> 10) KiB")
    static let tooLargeLines = ConnectionFailure(
        "the lines around the chunks of the response are larger than \(ResponseReader.maximumHeadBytes >> 10) KiB")

    static func malformed(_ what: String) -> ConnectionFailure {
        ConnectionFailure("the response is not HTTP/1.1: \(what)")
    }
}
