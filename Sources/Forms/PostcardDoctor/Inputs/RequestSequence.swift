import PostcardForm
import PostcardFoundation

/// Reads raw requests that follow each other, in chunks of any size, and returns the bytes of one of them.
///
/// A request ends where its head says. The bytes after it begin another only with a request line. Other bytes stay with
/// the request before them, whose examination reports them.
struct RequestSequence: Sendable {
    /// The number of the request to return, from 1; `nil` for the first with a body.
    private let entry: Int?
    private var state = State.head([])
    private var choice = Choice.searching
    /// The head of the current request, while it is not known whether it has a body.
    private var heldHead: [UInt8] = []
    /// The number of the current request, from 1.
    private(set) var requestCount = 0
    private(set) var takenEntry: Int?

    private enum State {
        case head([UInt8])
        case body(rest: Int64)
        case chunks(ChunkedBody)
        /// After a request: the beginning of a line that may be a request line.
        case nextLine([UInt8])
        /// All further bytes belong to the current request.
        case rest
    }

    /// The progress of choosing the request whose bytes are returned.
    private enum Choice {
        case searching, taking, done
    }

    private static let maximumHeadBytes = 64 << 10
    private static let maximumLineBytes = 8 << 10

    init(entry: Int?) {
        self.entry = entry
    }

    /// Reads the next bytes of the input.
    ///
    /// - Parameters:
    ///   - chunk: Any number of bytes.
    ///   - handOn: Receives the next bytes of the request.
    mutating func read(_ chunk: RawSpan, handOn: (RawSpan) -> Void) {
        countSteps(chunk.byteCount)
        var position = 0
        while position < chunk.byteCount { position += step(chunk.extracting(position...), handOn) }
    }

    /// Ends the input.
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

    /// - Returns: How many of the bytes were read: at least one.
    private mutating func step(_ bytes: RawSpan, _ handOn: (RawSpan) -> Void) -> Int {
        switch state {
        case .head(var head):
            // Emptied first, because an array with two owners is copied when it grows.
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

    /// A method in capital letters, a target, and a version of HTTP/1.
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

    /// Begins a request.
    ///
    /// - Parameters:
    ///   - bytes: The bytes of its head.
    ///   - head: What the head says; `nil` if it has no end, or is none.
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

    /// The state after a head. A body of unknown length lasts to the end of the input.
    private static func state(behind head: RequestHead) -> State {
        if head.isChunked { return .chunks(ChunkedBody()) }
        if let length = head.contentLength { return length > 0 ? .body(rest: length) : .nextLine([]) }
        let isBodiless = ["GET", "HEAD", "OPTIONS", "DELETE"].contains(head.method)
        return isBodiless && head.all("content-length").isEmpty ? .nextLine([]) : .rest
    }

    /// Leaves bytes that are no request line, and all that follow, to the current request.
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
