public import Hummingbird
import HummingbirdCore
public import Logging
import NIOCore
public import PostcardServer
import ServiceLifecycle
public import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A whole receiver: a server with routes for uploads, a page to try it with, `/health` and `/status`.
///
/// ```swift
/// let receiver = Receiver(directory: "received")
/// try await receiver.run { url in print("listening on \(url)") }
/// ```
///
/// Beside the routes of ``Hummingbird/Router/addUploads(to:options:)`` it has:
///
/// | request | answer |
/// | --- | --- |
/// | `GET /` | the page, in English or Korean as `Accept-Language` or `?lang=` says |
/// | `GET /events` | server-sent events: `uploaded` with a record, `deleted` with its id, `request` with an entry |
/// | `GET /requests` | the last requests, newest first, accepted or refused |
/// | `GET /requests/ID` | one of them: header fields, parts, problems with the bytes around, a line for curl |
/// | `GET /health` | 200 `ok`; 503 with the reason while no form can be stored |
/// | `GET /status` | counts of what was received and refused |
///
/// Secrets are masked in what is kept of a request: header fields such as `Authorization`, parameters in addresses, and
/// fields of forms such as `password`. Names decide, in doubt for masking. `Idempotency-Key` is not a secret.
public struct Receiver: Sendable {
    /// Where the uploads are kept.
    public var directory: FilePath
    /// How many bytes of the directory's disk are left to others: 64 MiB unless set.
    public var keptFreeBytes: Int64 = 64 << 20
    /// The address to listen on: this machine only unless set.
    public var host = "127.0.0.1"
    /// The port to listen on; 0 stands for a free one.
    public var port = 8080
    /// What is taken, where, and what else is offered.
    public var uploads = UploadOptions()
    /// Who may post and who may read: everybody who reaches the address unless set.
    public var tokens = AccessTokens()
    /// By which names the receiver may be called beside this machine's own, where it listens to this machine alone and
    /// lets in whoever has no token: none unless set. The name in a request's `Host` is looked at there, because a
    /// page on the web can have its own name resolve to this machine (DNS rebinding).
    public var allowedHosts: Set<String> = []
    /// The origins whose pages may post here, delete, and read the answers, such as `https://app.example`. Defaults to
    /// none.
    ///
    /// Where no token is wanted for it, a request that changes something is refused if a page of another origin has the
    /// browser send it: one with another `Sec-Fetch-Site` than `same-origin` and `none`, or without that field, one with
    /// another `Origin` than the receiver's own. Requests without both are not a browser's.
    public var allowedOrigins: Set<String> = []
    /// How much of the requests is kept to be looked at on the page and by `GET /requests`; nothing where it is `nil`.
    public var inspection: InspectionOptions? = InspectionOptions()
    /// How a connection is kept, and how it ends.
    public var connections = ConnectionOptions()
    /// The most connections at once; others wait until one of them is closed. One address can have the part of them
    /// that ``UploadOptions/clientShare`` says, and further connections of it are closed. Defaults to `nil`: half as
    /// many as the process can open files (`RLIMIT_NOFILE`), less 32, so that each leaves room for a file.
    public var maximumConnections: Int?
    /// Where it is set connections are of TLS, and of HTTP/2 where the client can do that.
    public var certificate: ServerCertificate?
    /// Told of every request in one line, at the level `info`, with its path and what became of it, never with names
    /// or values of the form; and of the receiver's own failures.
    public var logger = Logger(label: "postcard.receiver")

    /// Makes a receiver with the usual settings.
    public init(directory: FilePath) {
        self.directory = directory
    }

    /// Makes a receiver with the usual settings.
    public init(directory: String) {
        self.init(directory: FilePath(directory))
    }

    /// Receives until the process gets SIGTERM or SIGINT, or the task is cancelled.
    ///
    /// After the signal no new requests are accepted. Those in progress may finish for as long as
    /// ``ConnectionOptions/shutdownTimeout`` says, then their connections are closed, and the call returns. A second signal
    /// ends the process at once, as if the signal was not handled at all.
    ///
    /// - Parameter onRunning: Called once connections are accepted, with the server's address, such as
    ///   `http://127.0.0.1:8080`.
    /// - Throws: ``UploadStoreError`` where the directory cannot be used; ``ServerCertificateError`` where the
    ///   certificate cannot; `Errno`, which says why, where the address cannot be listened on.
    public func run(onRunning: @escaping @Sendable (_ url: String) async -> Void = { _ in }) async throws {
        do {
            let application = try application(onRunning: onRunning)
            try await ServiceGroup(services: [application], logger: logger).runUntilSignal()
        } catch let error as IOError {
            throw Errno(rawValue: error.errnoCode)
        }
    }

    /// The receiver as a Hummingbird application, for those who run services of their own beside it.
    ///
    /// The directory is opened, and kept from others, for as long as the application lives. A graceful shutdown of the
    /// `ServiceGroup` that runs it honors ``ConnectionOptions/shutdownTimeout``.
    public func application(
        onRunning: @escaping @Sendable (_ url: String) async -> Void = { _ in }
    ) throws -> Application<RouterResponder<BasicRequestContext>> {
        let store = try LocalUploadStore(directory: directory, keptFreeBytes: keptFreeBytes, logger: logger)
        let meter = UploadMeter()
        let router = Router()
        let live = LiveEvents()
        let inspector = inspection.map { RequestInspector(options: $0, live: live) }
        router.add(middleware: RequestLog())
        // Before all others, because it is to see what they refuse.
        if let inspector {
            router.add(
                middleware: InspectionMiddleware(inspector: inspector, uploadPath: uploads.path, scheme: scheme))
        }
        router.add(middleware: LiveMiddleware(live: live))
        let origins = OriginPolicy(
            allowed: Set(allowedOrigins.map { $0.lowercased() }), isSecure: certificate != nil)
        router.add(middleware: OriginMiddleware(policy: origins))
        router.add(middleware: ProblemMiddleware())
        let judgesHost = LoopbackAddress.contains(host) && (tokens.posting.isEmpty || tokens.reading.isEmpty)
        router.add(
            middleware: HostMiddleware(
                allowed: judgesHost ? Set(allowedHosts.map { $0.lowercased() }) : nil, meter: meter))
        router.add(
            middleware: AccessMiddleware(tokens: tokens, origins: origins, uploadPath: uploads.path, meter: meter))
        // One table, because a path of the receiver's own may be where forms are posted.
        var routes = Routes<BasicRequestContext>()
        let budget = AnswerBudget(bytes: uploads.maximumAnswerBytes, clientShare: uploads.clientShare)
        routes.addUploads(to: store, options: uploads, meter: meter, budget: budget)
        addPages(to: &routes, live: live, inspector: inspector, budget: budget)
        addStatus(of: store, meter, to: &routes)
        routes.install(on: router)
        return Application(
            router: router, server: try makeServer(meter, inspector),
            configuration: ApplicationConfiguration(address: .hostname(host, port: port)),
            services: [ExpirySweep(store: store)],
            onServerRunning: { channel in
                await limitConnections(of: channel)
                await onRunning(url(port: channel.localAddress?.port ?? port))
            },
            logger: logger)
    }

    private func limitConnections(of server: any Channel) async {
        let maximum = maximumConnections ?? OpenFiles.maximumConnections
        do {
            try await ConnectionGate.install(
                on: server, maximum: maximum, share: PeerAddress.share(uploads.clientShare, of: maximum),
                logger: logger)
        } catch {
            logger.error("Could not limit the connections", metadata: ["error": "\(error)"])
        }
    }

    private var scheme: String { certificate == nil ? "http" : "https" }

    private func makeServer(_ meter: UploadMeter, _ inspector: RequestInspector?) throws -> HTTPServerBuilder {
        let onEarlyRefusal: EarlyRefusal.Observer = { [logger, scheme] refusal in
            meter.refused(refusal.problem)
            inspector?.keep(RecordedRequest(refusal, scheme: scheme))
            RequestLine(refusal).write(to: logger)
        }
        guard let certificate else { return .uploads(options: connections, onEarlyRefusal: onEarlyRefusal) }
        return try .uploads(
            tls: certificate.configuration(), options: connections, onEarlyRefusal: onEarlyRefusal)
    }

    private func addPages(
        to routes: inout Routes<BasicRequestContext>, live: LiveEvents, inspector: RequestInspector?,
        budget: AnswerBudget
    ) {
        let canRead = uploads.access.contains(.reading)
        let page = WebPage(
            WebPage.Offer(
                uploadPath: uploads.path, canRead: canRead, canDelete: uploads.access.contains(.deleting),
                showsRequests: canRead && inspector != nil))
        routes.addReading("/") { request, _ in page.response(to: request) }
        routes.addReading("/assets/{name}") { _, context in try WebPage.asset(context.parameters.get("name")) }
        if canRead {
            let events = EventStream(live: live)
            routes.add("/events", .get) { _, _ in try events.response() }
        }
        if canRead, let inspector {
            let reading = RequestReading(inspector: inspector, budget: budget)
            routes.addReading("/requests") { _, _ in try reading.list() }
            routes.addReading("/requests/{id}") { _, context in try reading.request(id: context.parameters.get("id")) }
        }
    }

    private func addStatus(
        of store: LocalUploadStore, _ meter: UploadMeter, to routes: inout Routes<BasicRequestContext>
    ) {
        routes.addReading("/health") { _, context in
            do {
                try await store.checkReadiness()
            } catch {
                context.logger.error("Could not store a form", metadata: ["error": "\(error)"])
                throw UploadProblem.store(error)
            }
            return Response(
                status: .ok, headers: [.contentType: "text/plain; charset=utf-8", .cacheControl: "no-store"],
                body: ResponseBody(byteBuffer: ByteBuffer(string: "ok")))
        }
        let started = Date()
        routes.addReading("/status") { _, _ in
            try await ReceiverStatus(
                started: started, uploads: meter.current, freeBytes: try? store.freeBytes()
            ).response
        }
    }

    private func url(port: Int) -> String {
        host.contains(":") ? "\(scheme)://[\(host)]:\(port)" : "\(scheme)://\(host):\(port)"
    }
}

/// Removes uploads that have expired, also where no request comes.
struct ExpirySweep: Service {
    let store: LocalUploadStore

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                await store.removeExpired()
                try? await Task.sleep(for: .seconds(60))
            }
        }
    }
}

/// What `GET /status` answers: how the receiver has fared since it was started.
struct ReceiverStatus: Encodable {
    let started: Date
    let uploads: UploadMeter.Counts
    /// The bytes that are free where uploads are kept; none where that cannot be said.
    let freeBytes: Int64?

    var response: Response {
        get throws {
            Response(
                status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-store"],
                body: ResponseBody(byteBuffer: ByteBuffer(bytes: try JSONEncoder.forAnswers.encode(self))))
        }
    }
}
