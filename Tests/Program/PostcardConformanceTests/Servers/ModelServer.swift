import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOPosix
import PostcardWire
import PostcardTestSupport

@testable import PostcardConformance

/// A server in memory that keeps to the draft, but for one mistake.
enum ModelServer {
    /// Runs it while something is done with its address.
    ///
    /// - Parameter origin: What comes before the paths in `Location`. Defaults to nothing.
    static func run<Result>(
        _ deviation: Deviation? = nil, uploadsAt origin: String = "", while work: (ServerAddress) async throws -> Result
    ) async throws -> Result {
        // One event loop for all connections, to which the uploads belong.
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let uploads = try await loop.submit { NIOLoopBound(ModelUploads(deviation, at: origin), eventLoop: loop) }.get()
        return try await withListener(on: loop) { channel in
            try channel.pipeline.syncOperations.addHandlers([
                ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes)),
                ModelHandler(uploads.value),
            ])
        } while: { port in
            guard let address = ServerAddress("http://127.0.0.1:\(port)/uploads") else {
                throw ProgramFailure("The server has no address.")
            }
            return try await work(address)
        }
    }
}

/// One connection.
private final class ModelHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = ByteBuffer

    private enum State {
        case idle
        /// The content is appended to an upload.
        case appending(ModelUploads.Upload, Appending)
        /// The response is sent, or will be at the end of the request.
        case discarding(ModelUploads.Response?)
    }

    private struct Appending {
        let isComplete: Bool
        let isAppend: Bool
        let isResumable: Bool
        let reportsProgress: Bool
        /// The number of bytes that the content begins at.
        let start: Int
        /// The version of the draft that the request named, if the server knows it.
        let version: String?
        var reports = 0
    }

    private let uploads: ModelUploads
    private var state = State.idle

    init(_ uploads: ModelUploads) {
        self.uploads = uploads
    }

    private var deviation: Deviation? { uploads.deviation }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            state = begin(head, context)
        case .body(let bytes):
            guard case .appending(let upload, var appending) = state else { return }
            upload.bytes += bytes.readableBytesView
            if let length = upload.length, upload.bytes.count > length, deviation != .exceedsLengths {
                if deviation == .keepsExceeded { upload.bytes.removeLast(upload.bytes.count - Int(length)) }
                upload.isGone = deviation != .keepsExceeded
                upload.owner = nil
                write(uploads.inconsistentLength(), context)
                state = .discarding(nil)
                return
            }
            report(upload, &appending, context)
            state = .appending(upload, appending)
        case .end:
            end(context)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        guard case .appending(let upload, let appending) = state else { return }
        upload.owner = nil
        if deviation == .dropsCutContent { upload.bytes.removeLast(upload.bytes.count - appending.start) }
        if deviation == .completesCutUploads { upload.isComplete = true }
        state = .idle
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    private func report(
        _ upload: ModelUploads.Upload, _ appending: inout Appending, _ context: ChannelHandlerContext
    ) {
        guard appending.reportsProgress else { return }
        appending.reports += 1
        var offset = upload.bytes.count
        if deviation == .progressFalls, appending.reports > 1 { offset = max(offset - 900_000, 0) }
        var response = ModelUploads.Response(status: 104).with("Upload-Offset", "\(offset)")
        if deviation != .announcesWithoutVersion {
            response = response.with("Upload-Draft-Interop-Version", appending.version ?? "")
        }
        if deviation == .announcesLocationInAppends { response = response.with("Location", uploads.location(upload)) }
        write(response, context)
    }

    // MARK: - The beginning of a request

    private func begin(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) -> State {
        var fields = HTTPFields()
        for (name, value) in head.headers {
            if let name = HTTPField.Name(name) { fields.append(HTTPField(name: name, value: value)) }
        }
        if head.method == .OPTIONS { return .discarding(uploads.options) }
        if head.method == .POST { return create(fields, context) }
        guard let upload = uploads.find(head.uri) else { return .discarding(ModelUploads.Response(status: 404)) }
        if let owner = upload.owner, owner !== context.channel, deviation != .keepsRequestsInFlight {
            upload.owner = nil
            owner.close(promise: nil)
        }
        switch head.method {
        case .HEAD, .GET: return .discarding(uploads.head(upload))
        case .DELETE:
            upload.isGone = deviation != .keepsDeleted
            return .discarding(ModelUploads.Response(status: 204))
        case .PATCH: return append(fields, to: upload, context)
        default: return .discarding(ModelUploads.Response(status: 405))
        }
    }

    private func create(_ fields: HTTPFields, _ context: ChannelHandlerContext) -> State {
        let isComplete = uploads.completeness(fields)
        let content = fields[.contentLength].flatMap { Int64($0) }
        guard max(content ?? 0, fields.uploadLength ?? 0) <= ModelUploads.maximumBytes else {
            write(uploads.tooLarge(), context)
            return .discarding(nil)
        }
        let lengths = Set([fields.uploadLength, isComplete == true ? content : nil].compactMap(\.self))
        let end = content ?? 0
        if isComplete != nil, deviation != .ignoresLengths, lengths.count > 1 || lengths.contains(where: { $0 < end }) {
            return .discarding(uploads.inconsistentLength())
        }
        let upload = uploads.create(fields)
        upload.length = isComplete == nil || deviation == .ignoresLengths ? nil : lengths.first
        if isComplete != nil { announce(upload, fields, context) }
        continueIfAsked(fields, context)
        return begin(upload, isComplete ?? true, fields, isAppend: false, isResumable: isComplete != nil, context)
    }

    private func announce(_ upload: ModelUploads.Upload, _ fields: HTTPFields, _ context: ChannelHandlerContext) {
        let isAsked = ModelUploads.version(of: fields) != nil || deviation == .announcesToAnyone
        guard isAsked, deviation != .announcesNothing else { return }
        var response = ModelUploads.Response(status: 104).with("Upload-Limit", uploads.limits(of: upload))
        if deviation != .announcesWithoutLocation { response = response.with("Location", uploads.location(upload)) }
        if deviation != .announcesWithoutVersion {
            response = response.with("Upload-Draft-Interop-Version", ModelUploads.version(of: fields) ?? "")
        }
        write(response, context)
    }

    private func continueIfAsked(_ fields: HTTPFields, _ context: ChannelHandlerContext) {
        guard fields[.expect] == "100-continue", deviation != .omitsContinue else { return }
        write(ModelUploads.Response(status: 100), context)
    }

    private func append(
        _ fields: HTTPFields, to upload: ModelUploads.Upload, _ context: ChannelHandlerContext
    ) -> State {
        let type = fields[.contentType]?.lowercased()
        guard type == "application/partial-upload" || deviation == .appendsAnyType else {
            return .discarding(ModelUploads.Response(status: 415))
        }
        guard let offset = uploads.offset(fields), let isComplete = uploads.completeness(fields) else {
            return .discarding(ModelUploads.Response(status: 400))
        }
        let content = fields[.contentLength].flatMap { Int64($0) }
        if offset < upload.bytes.count, deviation == .truncates {
            upload.bytes.removeLast(upload.bytes.count - Int(offset))
        }
        guard offset == upload.bytes.count || deviation == .appendsAnywhere else {
            return .discarding(uploads.conflict(upload, provided: offset))
        }
        guard !upload.isComplete || deviation == .appendsToComplete else {
            return .discarding(content == 0 ? uploads.process(upload, isAppend: true) : uploads.inconsistentLength())
        }
        let end = content.map { offset + $0 }
        guard max(end ?? 0, fields.uploadLength ?? 0) <= ModelUploads.maximumBytes else {
            write(uploads.tooLarge(upload), context)
            return .discarding(nil)
        }
        let lengths = Set([fields.uploadLength, upload.length, isComplete ? end : nil].compactMap(\.self))
        if deviation == .exceedsLengths || deviation == .appendsToComplete {
            upload.length = nil
        } else if deviation != .ignoresLengths {
            if lengths.count > 1 || lengths.contains(where: { $0 < end ?? 0 }) {
                return .discarding(uploads.inconsistentLength())
            }
            upload.length = lengths.first
        }
        continueIfAsked(fields, context)
        return begin(upload, isComplete, fields, isAppend: true, isResumable: true, context)
    }

    private func begin(
        _ upload: ModelUploads.Upload, _ isComplete: Bool, _ fields: HTTPFields, isAppend: Bool, isResumable: Bool,
        _ context: ChannelHandlerContext
    ) -> State {
        upload.owner = context.channel
        let isAsked = ModelUploads.version(of: fields) != nil || deviation == .announcesToAnyone
        return .appending(
            upload,
            Appending(
                isComplete: isComplete, isAppend: isAppend, isResumable: isResumable,
                reportsProgress: isAppend && isAsked, start: upload.bytes.count,
                version: ModelUploads.version(of: fields)))
    }

    // MARK: - The end of a request

    private func end(_ context: ChannelHandlerContext) {
        defer { state = .idle }
        switch state {
        case .idle: return
        case .discarding(let response): if let response { write(response, context) }
        case .appending(let upload, let appending):
            upload.owner = nil
            write(response(to: upload, appending), context)
        }
    }

    private func response(to upload: ModelUploads.Upload, _ appending: Appending) -> ModelUploads.Response {
        guard appending.isComplete else {
            return appending.isAppend
                ? ModelUploads.Response(status: 204).with("Upload-Complete", "?0") : uploads.created(upload)
        }
        upload.isComplete = true
        return uploads.process(upload, isAppend: appending.isAppend)
    }

    private func write(_ response: ModelUploads.Response, _ context: ChannelHandlerContext) {
        var text = "HTTP/1.1 \(response.status) -\r\n"
        for (name, value) in response.fields { text += "\(name): \(value)\r\n" }
        if response.status >= 200, response.status != 204 { text += "Content-Length: \(response.body.utf8.count)\r\n" }
        text += "\r\n" + response.body
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
    }
}
