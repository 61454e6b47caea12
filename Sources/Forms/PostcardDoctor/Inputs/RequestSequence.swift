import PostcardForm
import PostcardFoundation

/// Reads raw requests that follow each other, in chunks of any size, and returns the bytes of one request.
///
/// The head of a request says where the request ends. A request line must follow, or the remaining bytes count as part
/// of the request.
struct RequestSequence: Sendable {
    /// The number of the request to return, from 1; `nil` for the first request with a body.
    private let entry: Int?
    private var state = State.head([])
    private var choice = Choice.searching
    /// The head of the current request, kept until it is known whether the request has a body.
    private var heldHead: [UInt8] = []
    /// The number of the current request, from 1.
    private(set) var requestCount = 0
    private(set) var takenEntry: Int?

    private enum State {
        case head([UInt8])
        case body(rest: Int64)
        case chunks(ChunkedBody)
        /// The line after a request, which may be a request line. The bytes are its beginning.
        case nextLine([UInt8])
        /// The rest of the input, which belongs to the current request.
        case rest
    }

    /// The progress in finding the request to return.
    private enum Choice {
        case searching, taking, done
    }

    private static let maximumHeadBytes = 64 << 10
    private static let maximumLineBytes = 8 << 10

    init(entry: Int?) {
        self.entry = entry
    }

    /// Reads the next bytes of the input, and passes the bytes of the request to `handOn`.
    mutating func read(_ chunk: RawSpan, handOn: (RawSpan) -> Void) {
        countSteps(chunk.byteCount)
        var position = 0
        while position < chunk.byteCount { position += step(chunk.extracting(position...), handOn) }
    }

    mutating func finish(handOn: (RawSpan) -> Void) {
        switch state {
        case .head(let bytes):
            if !bytes.isEmpty { begin(bytes, nil, handOn) }
        case .nextLine(let line):
            leave(line, handOn)
        case .body, .chunks, .rest:
            break
        }
    }

    /// Reads some of the given bytes. Returns the number of bytes that were read: at least one.
    private mutating func step(_ bytes: RawSpan, _ handOn: (RawSpan) -> Void) -> Int {
        switch state {
        case .head(var head):
            // Emptying the state first leaves the array with one owner, so that appending copies nothing.
            state = .head([])
            return readHead(&head, bytes, handOn)
        case .body(let rest):
            let count = Int(min(rest, Int64(bytes.byteCount)))
            if choice == .taking { handOn(bytes.extracting(first: count)) }
            state = rest == Int64(count) ? .nextLine([]) : .body(rest: rest - Int64(count))
            return count
        case .chunks(var body):
            body.read(bytes) { _ in }
            let count = bytes.byteCount - Int(clamping: body.excess)
            if choice == .taking { handOn(bytes.extracting(first: count)) }
            state = body.problem == nil ? .nextLine([]) : .chunks(body)
            return count
        case .nextLine(let line):
            return readLine(line, bytes, handOn)
        case .rest:
            if choice == .taking { handOn(bytes) }
            return bytes.byteCount
        }
    }

    private mutating func readHead(_ head: inout [UInt8], _ bytes: RawSpan, _ handOn: (RawSpan) -> Void) -> Int {
        let known = head.count
        bytes.withUnsafeBytes { head.append(contentsOf: $0.prefix(Self.maximumHeadBytes - known)) }
        let count = head.count
        guard let end = RequestHead.end(in: head, from: known) else {
            if count < Self.maximumHeadBytes { state = .head(head) } else { begin(head, nil, handOn) }
            return count - known
        }
        head.removeSubrange(end...)
        begin(head, try? RequestHead(head), handOn)
        return end - known
    }

    /// Reads the line after a request up to its LF.
    private mutating func readLine(_ known: [UInt8], _ bytes: RawSpan, _ handOn: (RawSpan) -> Void) -> Int {
        let line = bytes.withUnsafeBytes { bytes -> [UInt8] in
            let room = bytes.prefix(Self.maximumLineBytes - known.count)
            let end = room.firstIndex(of: .lineFeed).map { $0 + 1 } ?? room.endIndex
            return known + room[..<end]
        }
        // Servers ignore empty lines before a request line (RFC 9112 §2.2).
        let text = line.drop { $0 == .carriageReturn || $0 == .lineFeed }
        if text.last != .lineFeed, line.count < Self.maximumLineBytes {
            state = .nextLine(line)
        } else if Self.isRequestLine(text) {
            if choice == .taking { choice = .done }
            heldHead = []
            state = .head(Array(text))
        } else {
            leave(line, handOn)
        }
        return line.count - known.count
    }

    /// Whether a line has a method in capital letters, a target, and a version of HTTP/1.
    private static func isRequestLine(_ line: ArraySlice<UInt8>) -> Bool {
        guard line.last == .lineFeed else { return false }
        var text = line.dropLast()
        if text.last == .carriageReturn { text.removeLast() }
        let words = text.split(separator: .space, omittingEmptySubsequences: false)
        guard words.count == 3, !words[0].isEmpty, !words[1].isEmpty else { return false }
        let isMethod = words[0].allSatisfy { (0x41...0x5A).contains($0) }
        return isMethod && words[2].count == 8 && words[2].starts(with: "HTTP/1.".utf8)
    }

    // MARK: - Requests

    /// Begins a request with the bytes of its head. The parsed head is `nil` if the bytes are not a complete head.
    private mutating func begin(_ bytes: [UInt8], _ head: RequestHead?, _ handOn: (RawSpan) -> Void) {
        requestCount += 1
        state = head.map { Self.state(behind: $0) } ?? .rest
        guard choice == .searching else { return }
        if let entry {
            if entry == requestCount { take(bytes, handOn) }
        } else if case .nextLine = state, head?.contentType?.value.lowercased().contains("multipart/") != true {
            heldHead = bytes
        } else {
            take(bytes, handOn)
        }
    }

    /// The state after a head. A body of unknown length extends to the end of the input.
    private static func state(behind head: RequestHead) -> State {
        if head.isChunked { return .chunks(ChunkedBody()) }
        if let length = head.contentLength { return length > 0 ? .body(rest: length) : .nextLine([]) }
        let isBodiless = ["GET", "HEAD", "OPTIONS", "DELETE"].contains(head.method)
        return isBodiless && head.all("content-length").isEmpty ? .nextLine([]) : .rest
    }

    /// Continues the current request with these bytes and all that follow, because they do not begin another request.
    private mutating func leave(_ bytes: [UInt8], _ handOn: (RawSpan) -> Void) {
        state = .rest
        if choice == .searching, !heldHead.isEmpty { take(heldHead, handOn) }
        if choice == .taking { Self.hand(on: bytes, handOn) }
    }

    private mutating func take(_ head: [UInt8], _ handOn: (RawSpan) -> Void) {
        takenEntry = requestCount
        choice = .taking
        Self.hand(on: head, handOn)
    }

    private static func hand(on bytes: [UInt8], _ handOn: (RawSpan) -> Void) {
        let bytes = bytes[...]
        handOn(bytes.span.bytes)
    }
}

/// Finds the end of a request on a connection that stays open.
///
/// The end of a badly broken request cannot be found, so the caller needs a timeout.
package struct RequestEnd: Sendable {
    private var state = State.head([])

    private enum State {
        case head([UInt8])
        case body(rest: Int64)
        case chunks(ChunkedBody)
        case complete
        case unknown
    }

    private static let maximumHeadBytes = 64 << 10

    /// Starts reading a connection.
    package init() {}

    /// Whether the request has ended, or the bytes received so far cannot begin a request.
    package var isComplete: Bool {
        if case .complete = state { true } else { false }
    }

    /// Whether the sender waits for `100 Continue` before it sends the body (RFC 9110 §10.1.1).
    package private(set) var expectsContinue = false

    /// Reads the next bytes of the connection.
    package mutating func read(_ chunk: RawSpan) {
        switch state {
        case .head(var head):
            let known = head.count
            state = .head([])
            chunk.withUnsafeBytes { head.append(contentsOf: $0.prefix(Self.maximumHeadBytes - known)) }
            guard let end = RequestHead.end(in: head, from: known) else {
                state = Self.state(withoutEnd: head)
                return
            }
            begin(head[..<end])
            if case .complete = state { return }
            // The bytes after the head belong to the body.
            read(chunk.extracting((end - known)...))
        case .body(let rest):
            let left = rest - Int64(chunk.byteCount)
            state = left > 0 ? .body(rest: left) : .complete
        case .chunks(var body):
            body.read(chunk) { _ in }
            state = body.problem == nil ? .complete : .chunks(body)
        case .complete, .unknown:
            break
        }
    }

    private static func state(withoutEnd head: [UInt8]) -> State {
        // A TLS or HTTP/2 client sends nothing more before it receives a reply.
        switch beginning(of: head[...]) {
        case .tls, .http2: .complete
        default: head.count < maximumHeadBytes ? .head(head) : .unknown
        }
    }

    /// The kind of a head that is not HTTP/1.1. Only first bytes are examined, because a head may arrive in many
    /// pieces.
    private static func beginning(of head: ArraySlice<UInt8>) -> ForeignInput? {
        ForeignInput(Array(head.prefix(ForeignInput.startLength)))
    }

    private mutating func begin(_ head: ArraySlice<UInt8>) {
        guard Self.beginning(of: head) != .http2 else {
            state = .complete
            return
        }
        var length: Int64?
        var isChunked = false
        for line in head.split(separator: UInt8(ascii: "\n")).dropFirst() {
            let text = String(streamSafe: line).lowercased()
            guard let colon = text.firstIndex(of: ":") else { continue }
            let value = text[text.index(after: colon)...].filter { !$0.isWhitespace }
            switch text[..<colon] {
            case "content-length": length = length ?? Int64(value)
            case "transfer-encoding": isChunked = isChunked || value.hasSuffix("chunked")
            case "expect": expectsContinue = expectsContinue || value == "100-continue"
            default: break
            }
        }
        if isChunked {
            state = .chunks(ChunkedBody())
        } else if let length {
            state = length > 0 ? .body(rest: length) : .complete
        } else {
            // Without a length, the request has no body (RFC 9112 §6.3), but the next bytes may be meant as its body.
            state = .unknown
        }
    }
}
