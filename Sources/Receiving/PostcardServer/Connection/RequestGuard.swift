import HTTPTypes
import HummingbirdCore
import NIOCore
import NIOHTTP1
import PostcardForm
import PostcardReception

/// Refuses invalid requests that NIO's decoder accepts, and adapts each response to its request's method and version.
///
/// The guard must be directly after the decoder, because later handlers do not see requests as they were sent.
final class RequestGuard: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// The facts about a request that affect its response.
    private struct Asked {
        var isHead = false
        var isOld = false
    }

    private var awaitingResponse = CircularBuffer<Asked>()
    /// The request whose response is being written.
    private var current = Asked()
    /// How the decoder treats the bytes after the current request.
    private var upgrade = Upgrade.none
    private var isAtEndOfUpgrade = false

    /// Whether the decoder has stopped after a request for another protocol. Further calls return `false`.
    func takeEndOfUpgrade() -> Bool {
        defer { isAtEndOfUpgrade = false }
        return isAtEndOfUpgrade
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = unwrapInboundIn(data)
        if case .end = part { isAtEndOfUpgrade = upgrade == .stopsDecoder }
        switch part {
        case .head(let head):
            if let problem = RequestFieldCheck.problem(of: head) ?? Self.refusal(of: head) {
                context.fireErrorCaught(RequestRefusal(problem: problem))
                return
            }
            upgrade = Upgrade(of: head)
            headRead(head, context: context)
        case .end(let trailers?) where !trailers.isEmpty:
            context.fireErrorCaught(RequestRefusal(problem: .trailerFields))
        case .body, .end:
            context.fireChannelRead(data)
        }
    }

    private func headRead(_ head: HTTPRequestHead, context: ChannelHandlerContext) {
        var head = head
        let isOld = Self.isOld(head)
        awaitingResponse.append(Asked(isHead: head.method == .HEAD, isOld: isOld))
        if isOld {
            // HTTP/1.0 has neither 100 Continue nor persistent connections (RFC 9110 §10.1.1, RFC 9112 §9.3).
            head.headers.remove(name: "Expect")
            head.headers.replaceOrAdd(name: "Connection", value: "close")
        }
        if upgrade == .unclear { head.headers.replaceOrAdd(name: "Connection", value: "close") }
        context.fireChannelRead(wrapInboundOut(.head(head)))
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(let head) where (100..<200).contains(head.status.code):
            if awaitingResponse.first?.isOld == true {
                promise?.succeed()
            } else {
                context.write(data, promise: promise)
            }
        case .head(var head):
            current = awaitingResponse.popFirst() ?? Asked()
            // For this version, the encoder sends no chunks.
            if current.isOld { head.version = .http1_0 }
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .body:
            if current.isHead { promise?.succeed() } else { context.write(data, promise: promise) }
        case .end:
            // The end of a chunked body belongs to the body, and a response to HEAD has no body (RFC 9110 §9.3.2).
            let end: HTTPServerResponsePart = .body(.byteBuffer(ByteBuffer()))
            context.write(current.isHead ? wrapOutboundOut(end) : data, promise: promise)
        }
    }

    private static func isOld(_ head: HTTPRequestHead) -> Bool {
        head.version.major < 1 || (head.version.major == 1 && head.version.minor == 0)
    }

    /// The refusal of a request because of its head; `nil` if the head is valid.
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

/// How the decoder treats a request for another protocol (RFC 9110 §7.8).
private enum Upgrade {
    case none
    /// The decoder reads nothing after this request.
    case stopsDecoder
    /// It is unknown whether the decoder continues to read, so the connection must end with the response.
    case unclear

    init(of head: HTTPRequestHead) {
        // The bytes after a CONNECT request need not be HTTP.
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

    /// Whether all parsers treat this byte of the `Connection` field alike, so that they agree on the field's options.
    private static func isPlain(_ byte: UInt8) -> Bool {
        byte.isLetterOrDigit || "-, ".utf8.contains(byte)
    }
}

@available(*, unavailable)
extension RequestGuard: Sendable {}

/// Decodes requests with NIO's decoder, and continues to read after a request with an `Upgrade` field.
///
/// NIO's decoder reads nothing after such a request. This server never upgrades to another protocol, so it must ignore
/// the field (RFC 9110 §7.8): a new NIO decoder reads the next request. Hummingbird's pipeline has its own NIO decoder,
/// which cannot be removed, so a `RequestDecoder` is placed before it and receives the bytes instead.
final class RequestDecoder: ByteToMessageDecoder {
    typealias InboundOut = HTTPServerRequestPart

    private let replaced: ChannelHandlerContext
    private let requestGuard: RequestGuard
    private var decoder = RequestDecoder.makeDecoder()

    /// `replaced` is the decoder that no longer receives bytes. Requests are passed to the next handler,
    /// `requestGuard`, which detects the end of a request for an upgrade.
    init(replacing replaced: ChannelHandlerContext, requestGuard: RequestGuard) {
        self.replaced = replaced
        self.requestGuard = requestGuard
    }

    func decoderAdded(context: ChannelHandlerContext) {
        decoder.decoderAdded(context: replaced)
    }

    func decoderRemoved(context: ChannelHandlerContext) {
        decoder.decoderRemoved(context: replaced)
    }

    func decode(context: ChannelHandlerContext, buffer: inout ByteBuffer) throws -> DecodingState {
        guard buffer.readableBytes > 0 else { return .needMoreData }
        let state = try decoder.decode(context: replaced, buffer: &buffer)
        guard requestGuard.takeEndOfUpgrade() else { return state }
        decoder.decoderRemoved(context: replaced)
        decoder = Self.makeDecoder()
        decoder.decoderAdded(context: replaced)
        return .continue
    }

    func decodeLast(
        context: ChannelHandlerContext, buffer: inout ByteBuffer, seenEOF: Bool
    ) throws -> DecodingState {
        while try decode(context: context, buffer: &buffer) == .continue {}
        return try decoder.decodeLast(context: replaced, buffer: &buffer, seenEOF: seenEOF)
    }

    private static func makeDecoder() -> HTTPRequestDecoder {
        let limits = HTTP1Channel.Configuration().httpDecoder
        var configuration = NIOHTTPDecoderLimitConfiguration()
        configuration.maxHeaderFieldSize = limits.maxHeaderFieldSize
        configuration.maxHeaderListSize = limits.maxHeaderListSize
        configuration.maxHeaderFieldCount = limits.maxHeaderFieldCount
        return HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes, limitConfiguration: configuration)
    }
}

@available(*, unavailable)
extension RequestDecoder: Sendable {}

/// Checks the target and header fields of a request before routes compare or search them.
enum RequestFieldCheck {
    /// The refusal of an HTTP/1 request because of its target or header fields; `nil` if they are valid.
    static func problem(of head: HTTPRequestHead) -> UploadProblem? {
        problem(ofTarget: head.uri, head.headers.lazy.map { ($0.name, $0.value) })
    }

    /// The refusal of an HTTP/2 request because of its target or header fields; `nil` if they are valid.
    static func problem(of request: HTTPRequest) -> UploadProblem? {
        let fields = [("Host", request.authority ?? ""), ("scheme", request.scheme ?? "")]
        return problem(ofTarget: request.path ?? "", fields + request.headerFields.map { ($0.name.rawName, $0.value) })
    }

    private static func problem(
        ofTarget target: String, _ fields: some Sequence<(name: String, value: String)>
    ) -> UploadProblem? {
        let refusal = RequestFieldGrammar.refusal(ofTarget: target.utf8)
        if let refusal { return UploadProblem(refusal, of: "target") }
        for (name, value) in fields {
            if let refusal = RequestFieldGrammar.refusal(ofField: name, value.utf8) {
                return UploadProblem(refusal, of: name)
            }
        }
        return nil
    }
}

extension UploadProblem {
    fileprivate init(_ refusal: RequestFieldGrammar.Refusal, of field: String) {
        self.init(
            status: refusal.code.status, code: UploadProblem.Code(refusal.code),
            message: refusal.message(of: field), advice: refusal.advice)
        if case .tooLong(let maximumBytes, _) = refusal {
            limit = Limit(name: "maximumFieldBytes", value: Int64(maximumBytes))
        }
    }
}
