#if !Server && !CommandLine
#error("PostcardReceiver needs the trait Server of this package: .package(url: …, traits: [\"Server\"])")
#endif

public import Hummingbird
import HummingbirdCore
public import Logging
import NIOCore
import PostcardFoundation
package import PostcardReception
public import PostcardServer
import PostcardWire
import ServiceLifecycle
public import SystemPackage

/// The application that `postcard serve` runs: a server with upload routes, a page, `/health` and `/status`.
///
/// ```swift
/// let receiver = Receiver(directory: "received")
/// try await receiver.run { url in print("listening on \(url)") }
/// ```
///
/// In addition to the routes of `Router.addUploads(to:options:stored:)`, the receiver has these routes:
///
/// | request | response |
/// | --- | --- |
/// | `GET /` | the page, in English or Korean by `Accept-Language` or `?lang=` |
/// | `GET /events` | server-sent events: `uploaded` with a record, `deleted` with its id, `request` with an entry, `behind` |
/// | `GET /requests` | the last requests, newest first, accepted or refused |
/// | `GET /requests/ID` | one request: header fields, parts, problems with their bytes, a line for curl; `?values=shown` hides only secrets |
/// | `GET /uploads/ID/files/N/thumbnail` | a small JPEG of a picture, in `postcard serve` |
/// | `GET /health` | 200 `ok`; 503 with the failure while no form can be stored |
/// | `GET /status` | counts of received and refused requests |
/// | `GET /metrics` | the counts of `/status` and more, in Prometheus' text format |
/// | `GET /webhooks` | how many records were announced, and which are stuck, in `postcard serve` with `--webhook` |
///
/// If several receivers share a store, events also report uploads that another receiver stores or deletes, a few
/// seconds later. The event `behind` reports changes of the maximum delay in `seconds`. Events about requests only
/// concern this receiver's own requests.
///
/// Secrets in recorded requests are masked by name: header fields such as `Authorization`, parameters in URLs, and
/// fields of forms such as `password`. `Idempotency-Key` is not a secret.
///
/// The metrics of forms are also passed to swift-metrics, for an app that has chosen a factory with
/// `MetricsSystem.bootstrap`. The receiver itself never chooses a factory for the process.
///
/// If the app has chosen a tracer with `InstrumentationSystem.bootstrap` (swift-distributed-tracing), each request is a
/// span in the trace that its header fields name, such as `traceparent` (W3C Trace Context). Spans contain no query, no
/// secrets of a path, and no data of the form.
public struct Receiver: Sendable {
    /// The place in which a receiver keeps its uploads.
    public enum Storage: Sendable {
        /// A directory on this machine. No other receiver may use it.
        case directory(FilePath)
        /// An open store, such as a bucket that several receivers share.
        case store(any MaintainedUploadStore)
    }

    /// The place in which the receiver keeps its uploads.
    public var storage: Storage
    /// The number of bytes on the directory's disk that the receiver leaves free. Defaults to 64 MiB.
    public var keptFreeBytes: Int64 = 64 << 20
    /// How long uploads are kept, and how many bytes of them. Defaults to `nil`: no limits.
    public var retention: RetentionPolicy?
    /// The address to listen on. Defaults to `127.0.0.1`, which only this machine can reach.
    public var host = "127.0.0.1"
    /// The port to listen on; 0 means any free port. Defaults to 8080.
    public var port = 8080
    /// The options of the upload routes. By default, clients may read and delete uploads; ``tokens`` may restrict them.
    public var uploads = Self.usualUploads
    /// The tokens that clients need to post and to read. Defaults to none: every client may post and read.
    public var tokens = AccessTokens()
    /// The host names that requests may use, in addition to this machine's own names. Defaults to none.
    ///
    /// The `Host` of requests is only checked if the receiver is reachable only from this machine and needs no tokens:
    /// a page on the web can let its own name resolve to this machine (DNS rebinding).
    public var allowedHosts: Set<String> = []
    /// The origins whose pages may post, delete and read, such as `https://app.example`. Defaults to none.
    ///
    /// A request without a token that changes something is refused if a page of another origin caused it. A page of
    /// another origin is recognized by a `Sec-Fetch-Site` other than `same-origin` or `none`. Without that field,
    /// `Origin` must be the receiver's own. A request without both fields is not from a browser.
    public var allowedOrigins: Set<String> = []
    /// Limits of the requests recorded for the page and `GET /requests`; `nil` records nothing.
    public var inspection: InspectionOptions? = InspectionOptions()
    /// The timeouts and limits of a connection.
    public var connections = ConnectionOptions()
    /// The maximum number of connections. Further connections wait until one is closed. `UploadOptions.clientShare`
    /// limits the connections of one address; its further connections are closed. Defaults to `nil`: half of the files
    /// that the process can open (`RLIMIT_NOFILE`), minus a small reserve. The other half is for requests. A number
    /// that leaves too few files for other uses is lowered.
    public var maximumConnections: Int?
    /// The certificate for TLS, which also allows HTTP/2. Defaults to `nil`: plain HTTP/1.1. Needs the trait `TLS`.
    public var certificate: ServerCertificate?
    /// The logger. Each request is one line at the level `info`: the client's address, the path and the result, but no
    /// names or values of the form. The receiver's own failures are logged too.
    public var logger = Logger(label: "postcard.receiver")

    /// The program that makes thumbnails, and its first arguments. The last argument is the path of a file, and the
    /// program writes a JPEG of that file to standard output. Defaults to `nil`: the page shows the files themselves.
    package var thumbnailCommand: [String]?

    /// The endpoint that is notified of each new record. Defaults to `nil`: no notifications.
    package var webhook: Webhook?

    /// Called with the log line of each request logged at the level `info`. Defaults to `nil`.
    package var onRequest: (@Sendable (RequestLine) -> Void)?

    /// Makes a receiver with default settings that keeps the uploads in a directory.
    public init(directory: FilePath) {
        storage = .directory(directory)
    }

    /// Makes a receiver with default settings that keeps the uploads in an open store. The receiver calls
    /// `MaintainedUploadStore.sweep()`, and makes no thumbnails.
    public init(store: any MaintainedUploadStore) {
        storage = .store(store)
    }

    /// Makes a receiver with default settings that keeps the uploads in a directory.
    public init(directory: String) {
        self.init(directory: FilePath(directory))
    }

    /// Receives forms until the process gets SIGTERM or SIGINT, or the task is cancelled.
    ///
    /// No new requests are then accepted. Requests in progress have `ConnectionOptions.shutdownTimeout` to finish.
    /// Afterwards, their connections are closed and the call returns. A second signal ends the process at once.
    ///
    /// - Parameter onRunning: Called once connections are accepted, with the server's address, such as
    ///   `http://127.0.0.1:8080`.
    /// - Throws: `UploadStoreError` if the directory cannot be used, ``ServerCertificateError`` if the certificate
    ///   cannot be used, and `Errno` if the receiver cannot listen on the address.
    public func run(onRunning: @escaping @Sendable (_ url: String) async -> Void = { _ in }) async throws {
        do {
            let application = try application(onRunning: onRunning)
            try await ServiceGroup(services: [application], logger: logger).runUntilSignal()
        } catch let error as IOError {
            throw Errno(rawValue: error.errnoCode)
        }
    }

    /// The receiver as a Hummingbird application that can run with other services.
    ///
    /// The directory is open and locked as long as the application exists. A graceful shutdown of the `ServiceGroup`
    /// that runs the application honors `ConnectionOptions.shutdownTimeout`.
    ///
    /// - Parameter onRunning: Called once connections are accepted, with the server's address.
    /// - Throws: `UploadStoreError` if the directory cannot be used, and ``ServerCertificateError`` if the certificate
    ///   cannot be used.
    public func application(
        onRunning: @escaping @Sendable (_ url: String) async -> Void = { _ in }
    ) throws -> some ApplicationProtocol {
        let parts = try Parts(of: self)
        let router = Router()
        for middleware in middleware(of: parts) { router.add(middleware: middleware) }
        routes(of: parts).install(on: router)
        var services: [any Service] = [StoreSweep(of: parts.store, meter: parts.meter, logger: logger)]
        if let keeper = parts.keeper { services.append(keeper) }
        if let webhooks = parts.webhooks { services.append(webhooks) }
        var application = Application(
            responder: BriefResponder(base: router.buildResponder()),
            server: try makeServer(parts.meter, parts.inspector, parts.shares),
            configuration: ApplicationConfiguration(address: .hostname(host, port: port)),
            services: services,
            onServerRunning: { channel in
                await limitConnections(of: channel, parts.shares)
                await onRunning(url(port: channel.localAddress?.port ?? port))
            },
            logger: logger)
        application.beforeServerStarts { await parts.keeper?.waitUntilBegun() }
        return application
    }

    private func limitConnections(of server: any Channel, _ shares: ShareAccount) async {
        do {
            try await ConnectionGate.install(
                on: server, shares: shares, options: connections, logger: logger)
        } catch {
            logger.error("Could not limit the connections", metadata: ["error": "\(error)"])
        }
    }

    func webhooks(of store: any MaintainedUploadStore, _ meter: UploadMeter) throws -> WebhookDeliverer? {
        guard let webhook else { return nil }
        guard let store = store as? any OutboxStore else {
            throw UploadStoreError(
                .unavailable, "The store does not remember which records are still to be announced to a webhook.",
                advice: "Use a directory, or no webhook.")
        }
        return WebhookDeliverer(webhook, from: store, meter: meter, logger: logger)
    }

    private static var usualUploads: UploadOptions {
        var options = UploadOptions()
        options.access = .all
        return options
    }

    var scheme: String { certificate == nil ? "http" : "https" }

    private func makeServer(
        _ meter: UploadMeter, _ inspector: RequestInspector?, _ shares: ShareAccount
    ) throws -> HTTPServerBuilder {
        let onEarlyRefusal: EarlyRefusal.Observer = { [logger, scheme, onRequest] refusal in
            meter.refused(refusal.problem)
            inspector?.keep(RecordedRequest(refusal, scheme: scheme))
            let line = RequestLine(refusal)
            line.write(to: logger)
            onRequest?(line)
        }
        guard let certificate else {
            return .uploads(options: connections, shares: shares, onEarlyRefusal: onEarlyRefusal)
        }
        #if TLS || CommandLine
        return try .uploads(
            tls: certificate.configuration(), options: connections, shares: shares, onEarlyRefusal: onEarlyRefusal)
        #else
        throw ServerCertificateError(
            message:
                "This build cannot use the certificate in \(certificate.chain). Build it with the trait TLS, which "
                + "is on by default.")
        #endif
    }

    func addPages(
        to routes: inout Routes<BasicRequestContext>, of store: any MaintainedUploadStore, live: LiveEvents,
        inspector: RequestInspector?, budget: ResponseBudget, hasThumbnails: Bool
    ) {
        let canRead = uploads.access.contains(.reading)
        let page = WebPage(
            WebPage.Offer(
                uploadPath: uploads.path, canRead: canRead, canDelete: uploads.access.contains(.deleting),
                showsRequests: canRead && inspector != nil, hasThumbnails: hasThumbnails))
        routes.addReading("/") { request, _, _ in page.response(to: request) }
        routes.addReading("/assets/{name}") { _, context, _ in try WebPage.asset(context.parameters.get("name")) }
        if canRead {
            let follower = StoreFollower(store, live, logger: logger) { inspector?.forget($0) }
            let events = EventStream(live: live, follower: follower)
            routes.add("/events", .get) { _, context, connection in
                try await events.response(on: connection, logger: context.logger)
            }
        }
        if canRead, let inspector {
            let reading = RequestReading(
                inspector: inspector, budget: budget, shared: store.followingInterval == nil ? nil : store)
            routes.addReading("/requests") { _, _, connection in try reading.list(on: connection) }
            routes.addReading("/requests/{id}") { request, context, connection in
                try await reading.request(
                    id: context.parameters.get("id"), showsValues: request.uri.queryParameters["values"] == "shown",
                    on: connection, logger: context.logger)
            }
        }
    }

    func addThumbnails(
        of store: LocalUploadStore, _ shares: ShareAccount, to routes: inout Routes<BasicRequestContext>
    ) {
        #if os(macOS) || os(Linux)
        guard let thumbnailCommand, uploads.access.contains(.reading) else { return }
        let thumbnails = Thumbnails(
            store: store, command: thumbnailCommand, shares: shares, budget: ResponseBudget(shares))
        routes.addReading("\(UploadRecord.readingPath)/{id}/files/{index}/thumbnail") { request, context, connection in
            try await thumbnails.response(
                to: request, id: context.parameters.get("id"), index: context.parameters.get("index"), on: connection,
                logger: context.logger)
        }
        #endif
    }

    func addStatus(
        of store: any MaintainedUploadStore, _ meter: UploadMeter, to routes: inout Routes<BasicRequestContext>
    ) {
        routes.addReading("/health") { _, context, _ in
            do {
                try await store.checkReadiness()
            } catch {
                context.logger.error("Could not store a form", metadata: ["error": "\(error)"])
                throw UploadProblem.unready(store, error)
            }
            return Response(
                status: .ok, headers: [.contentType: "text/plain; charset=utf-8", .cacheControl: "no-store"],
                body: ResponseBody(byteBuffer: ByteBuffer(string: "ok")))
        }
        let started = Date()
        let local = store as? LocalUploadStore
        routes.addReading("/status") { _, _, _ in
            try await ReceiverStatus(
                started: started, uploads: meter.current, freeBytes: try? local?.freeBytes(),
                damagedUploads: local?.damagedCount
            ).response
        }
    }

    private func url(port: Int) -> String {
        "\(scheme)://\(Port.authority(host, port))"
    }
}

/// The response to `GET /status`, with counts since the receiver started.
struct ReceiverStatus: Encodable {
    let started: Date
    let uploads: UploadMeter.Counts
    /// The number of free bytes on the directory's disk; `nil` without a directory, or if the number cannot be read.
    let freeBytes: Int64?
    /// The number of damaged uploads that were set aside, including those before the start; `nil` without a directory.
    let damagedUploads: Int?

    var response: Response {
        get throws {
            Response(
                status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-store"],
                body: ResponseBody(byteBuffer: ByteBuffer(bytes: try JSONEncoder.forResponses.encode(self))))
        }
    }
}
