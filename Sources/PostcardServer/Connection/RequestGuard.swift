import NIOCore
import NIOHTTP1

/// A request that is refused before anybody reads it.
struct RequestRefusal: Error {
    let problem: UploadProblem
}

/// Refuses what the codec lets pass and nobody may act on, and answers each request by its method and version.
///
/// It stands between the decoder and everything that knows requests no longer as they stood on the wire.
final class RequestGuard: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// What of a request matters to its answer.
    private struct Asked {
        var isHead = false
        var isOld = false
    }

    /// The requests that are not answered yet, in their order.
    private var unanswered = CircularBuffer<Asked>()
    /// The request whose answer is being written.
    private var current = Asked()
    /// What the decoder does behind the request that is being read.
    private var upgrade = Upgrade.none
    private var isAtEndOfUpgrade = false

    /// Whether the decoder has stopped behind a request that asked for another protocol, since this was last called.
    func takeEndOfUpgrade() -> Bool {
        defer { isAtEndOfUpgrade = false }
        return isAtEndOfUpgrade
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = unwrapInboundIn(data)
        if case .end = part { isAtEndOfUpgrade = upgrade == .stopsDecoder }
        switch part {
        case .head(let head):
            upgrade = Upgrade(of: head)
            headRead(head, context: context)
        case .end(let trailers?) where !trailers.isEmpty:
            context.fireErrorCaught(RequestRefusal(problem: .trailerFields))
        case .body, .end:
            context.fireChannelRead(data)
        }
    }

    private func headRead(_ head: HTTPRequestHead, context: ChannelHandlerContext) {
        if let problem = Self.refusal(of: head) {
            context.fireErrorCaught(RequestRefusal(problem: problem))
            return
        }
        var head = head
        let isOld = Self.isOld(head)
        unanswered.append(Asked(isHead: head.method == .HEAD, isOld: isOld))
        if isOld {
            // A client of HTTP/1.0 knows neither of them (RFC 9110 §10.1.1, RFC 9112 §9.3).
            head.headers.remove(name: "Expect")
            head.headers.replaceOrAdd(name: "Connection", value: "close")
        }
        if upgrade == .unclear { head.headers.replaceOrAdd(name: "Connection", value: "close") }
        context.fireChannelRead(wrapInboundOut(.head(head)))
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(let head) where (100..<200).contains(head.status.code):
            if unanswered.first?.isOld == true { promise?.succeed() } else { context.write(data, promise: promise) }
        case .head(var head):
            current = unanswered.popFirst() ?? Asked()
            // Of this version the encoder sends no chunks.
            if current.isOld { head.version = .http1_0 }
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .body:
            if current.isHead { promise?.succeed() } else { context.write(data, promise: promise) }
        case .end:
            // The end of a chunked body is part of the body, and an answer to HEAD has none (RFC 9110 §9.3.2).
            let end: HTTPServerResponsePart = .body(.byteBuffer(ByteBuffer()))
            context.write(current.isHead ? wrapOutboundOut(end) : data, promise: promise)
        }
    }

    private static func isOld(_ head: HTTPRequestHead) -> Bool {
        head.version.major < 1 || (head.version.major == 1 && head.version.minor == 0)
    }

    /// Why a request is refused by its head, whatever it asks for.
    private static func refusal(of head: HTTPRequestHead) -> UploadProblem? {
        let hosts = head.headers["Host"]
        guard hosts.count <= 1 else { return .severalHosts }
        guard hosts.count == 1 || isOld(head) else { return .missingHost }
        let codings = head.headers["Transfer-Encoding"]
        guard codings.isEmpty || !isOld(head) else { return .transferEncodingInOldRequest }
        guard codings.isEmpty || (codings.count == 1 && codings[0].lowercased() == "chunked") else {
            return .unknownTransferEncoding
        }
        return nil
    }
}

/// What the decoder makes of a request that may ask for another protocol on its connection (RFC 9110 §7.8).
private enum Upgrade {
    case none
    /// It reads nothing behind the request.
    case stopsDecoder
    /// It may read on or not. The connection is to end with the answer.
    case unclear

    init(of head: HTTPRequestHead) {
        // What follows CONNECT on a connection is no request.
        guard head.method != .CONNECT else {
            self = .unclear
            return
        }
        let options = head.headers["Connection"].map { $0.lowercased() }
        guard head.headers.contains(name: "Upgrade"), options.contains(where: { $0.contains("upgrade") }) else {
            self = .none
            return
        }
        let names = options.joined(separator: ",").split(separator: ",").map { $0.drop { $0 == " " } }
        let isPlain = options.allSatisfy { $0.utf8.allSatisfy(Self.isPlain) }
        let hasName = head.headers["Upgrade"].allSatisfy { !$0.isEmpty }
        self = isPlain && hasName && names.contains("upgrade") ? .stopsDecoder : .unclear
    }

    /// Whether a byte of `Connection` leaves no doubt about where its options begin and end.
    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        default: [UInt8(ascii: "-"), UInt8(ascii: ","), UInt8(ascii: " ")].contains(byte)
        }
    }
}

@available(*, unavailable)
extension RequestGuard: Sendable {}
