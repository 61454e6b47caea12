import Foundation
import NIOCore
import Synchronization

/// A connection to the raw server, read and answered by a script.
final class RawConnection {
    /// Which it is, from 0, in the order in which they came. Where two come at once their scripts may begin in another
    /// order.
    let number: Int

    private var inbound: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
    private let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
    private let log: RequestLog
    private var pending = ByteBuffer()

    init(
        _ inbound: NIOAsyncChannelInboundStream<ByteBuffer>, _ outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>,
        number: Int, log: RequestLog
    ) {
        self.number = number
        self.inbound = inbound.makeAsyncIterator()
        self.outbound = outbound
        self.log = log
    }

    /// Reads a request's head; `nil` where the connection ends before one.
    func readHead() async throws -> RawHead? {
        while true {
            if let end = pending.readableBytesView.firstRange(of: Array("\r\n\r\n".utf8)) {
                let length = end.upperBound - pending.readerIndex
                guard let text = pending.readString(length: length) else { return nil }
                let head = RawHead(text)
                log.begin(head)
                return head
            }
            guard try await readMore() else { return nil }
        }
    }

    /// Reads a request's head and its body.
    func readRequest() async throws -> RawRequest? {
        guard let head = try await readHead() else { return nil }
        let body = try await readBody(of: head)
        guard let body else { return nil }
        let request = RawRequest(head: head, body: body)
        log.end(request)
        return request
    }

    /// Reads a body by its head's length or in chunks; `nil` where the connection ends before it.
    func readBody(of head: RawHead) async throws -> [UInt8]? {
        if let length = head["Content-Length"].flatMap(Int.init) { return try await readBytes(length) }
        guard head["Transfer-Encoding"] != nil else { return [] }
        var body: [UInt8] = []
        while let line = try await readLine() {
            guard let size = Int(line, radix: 16), let chunk = try await readBytes(size), try await readLine() == ""
            else { return nil }
            if size == 0 { return body }
            body += chunk
        }
        return nil
    }

    /// Reads until the client ends its side, and gives the number of bytes.
    func readToEnd() async throws -> Int {
        var count = 0
        repeat {
            count += pending.readableBytes
            pending.clear()
        } while try await readMore()
        return count
    }

    /// Reads up to the end of a text and no further.
    func readThrough(_ text: String) async throws {
        while true {
            if let end = pending.readableBytesView.firstRange(of: Array(text.utf8)) {
                pending.moveReaderIndex(to: end.upperBound)
                return
            }
            guard try await readMore() else { return }
        }
    }

    /// Neither reads nor writes, until the test is over.
    func waitForEndOfServer() async {
        let (never, continuation) = AsyncStream.makeStream(of: Void.self)
        for await _ in never {}
        continuation.finish()
    }

    /// Writes a whole response.
    func respond(_ status: String, _ fields: [String: String] = [:], body: String = "") async throws {
        var text = "HTTP/1.1 \(status)\r\nContent-Length: \(body.utf8.count)\r\n"
        for (name, value) in fields { text += "\(name): \(value)\r\n" }
        try await write("\(text)\r\n\(body)")
    }

    /// Writes bytes as they are.
    func write(_ text: String) async throws {
        try await outbound.write(ByteBuffer(string: text))
    }

    private func readBytes(_ count: Int) async throws -> [UInt8]? {
        while pending.readableBytes < count {
            guard try await readMore() else { return nil }
        }
        return pending.readBytes(length: count)
    }

    private func readLine() async throws -> String? {
        while true {
            if let end = pending.readableBytesView.firstRange(of: Array("\r\n".utf8)) {
                let line = pending.readString(length: end.lowerBound - pending.readerIndex)
                pending.moveReaderIndex(forwardBy: 2)
                return line
            }
            guard try await readMore() else { return nil }
        }
    }

    private func readMore() async throws -> Bool {
        guard var bytes = try await inbound.next(isolation: #isolation) else { return false }
        pending.discardReadBytes()
        pending.writeBuffer(&bytes)
        return true
    }
}

/// A request's head as it came.
struct RawHead: Sendable {
    let line: String
    let fields: [(name: String, value: String)]

    init(_ text: String) {
        var lines = text.components(separatedBy: "\r\n").filter { !$0.isEmpty }
        line = lines.isEmpty ? "" : lines.removeFirst()
        fields = lines.map { line in
            let halves = line.split(separator: ":", maxSplits: 1)
            return (String(halves[0]), halves.count > 1 ? halves[1].trimmingCharacters(in: .whitespaces) : "")
        }
    }

    /// The first field of a name.
    subscript(name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }
}

/// A request that came whole.
struct RawRequest: Sendable {
    let head: RawHead
    let body: [UInt8]
}

/// What the server has read.
final class RequestLog: Sendable {
    private let entries = Mutex<(heads: [RawHead], whole: [RawRequest])>(([], []))

    /// The heads of all requests.
    var heads: [RawHead] { entries.withLock { $0.heads } }

    /// The requests whose body came to its end.
    var whole: [RawRequest] { entries.withLock { $0.whole } }

    func begin(_ head: RawHead) {
        entries.withLock { $0.heads.append(head) }
    }

    func end(_ request: RawRequest) {
        entries.withLock { $0.whole.append(request) }
    }
}
