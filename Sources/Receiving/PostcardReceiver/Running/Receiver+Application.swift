import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import PostcardFoundation
import PostcardReception
import PostcardServer

// MARK: - Parts of an application

extension Receiver {
    /// The objects that the middleware, routes and services of an application share.
    struct Parts: Sendable {
        let store: any MaintainedUploadStore
        let metrics = MetricsCollector()
        let meter: UploadMeter
        let shares: ShareAccount
        let live: LiveEvents
        let inspector: RequestInspector?
        let keeper: RetentionKeeper?
        let webhooks: WebhookDeliverer?

        init(of receiver: Receiver) throws {
            store =
                switch receiver.storage {
                case .directory(let path):
                    try LocalUploadStore(
                        directory: path, keptFreeBytes: receiver.keptFreeBytes, logger: receiver.logger)
                case .store(let open): open
                }
            let meter = UploadMeter(factory: metrics.withThatOfProcess)
            let shares = ShareAccount(receiver.shareLimits, meter: meter, logger: receiver.logger)
            let live = LiveEvents(shares: shares)
            let inspector = receiver.inspection.map { options in
                RequestInspector(options: options) { live.publish(.request($0)) }
            }
            let store = store
            keeper = receiver.retention.map { policy in
                RetentionKeeper(of: store, by: policy, meter: meter, logger: receiver.logger, shares: shares) { id in
                    inspector?.forget(id)
                    live.publish(.deleted(id))
                }
            }
            webhooks = try receiver.webhooks(of: store, meter)
            (self.meter, self.shares, self.live, self.inspector) = (meter, shares, live, inspector)
        }

        var local: LocalUploadStore? { store as? LocalUploadStore }

        /// Passes the event of a record to the live events, the inspector, the retention and the webhooks.
        func note(_ event: UploadReport.RecordEvent) {
            switch event {
            case .recorded(let record): live.publish(.uploaded(record))
            case .deleted(let id):
                inspector?.forget(id)
                live.publish(.deleted(id))
            case .repeated: break
            }
            keeper?.note(event)
            webhooks?.note(event)
        }
    }

    /// The maximum number of connections, requests and other resources for each client.
    var shareLimits: ShareLimits {
        var limits = ShareLimits(
            uploads, connections: maximumConnections.map(OpenFiles.allowed) ?? OpenFiles.maximumConnections)
        limits[.listeners] = LiveEvents.maximumListeners
        if let maximum = retention?.maximumBytes { limits[.excessBytes] = StoreLimit.tenth(of: maximum) }
        if !connections.trustedProxies.isEmpty {
            // Connections of a proxy are not limited, and each request of its clients uses a connection. The limit for
            // requests must therefore not exceed the limit for connections.
            limits[.requests] = min(limits[.requests], limits[.connections])
        }
        return limits
    }

    typealias RouteMiddleware = any MiddlewareProtocol<Request, Response, BasicRequestContext>

    /// The middleware that a request passes before its route, in this order.
    func middleware(of parts: Parts) -> [RouteMiddleware] {
        let origins = OriginPolicy(
            allowed: Set(allowedOrigins.map { $0.lowercased() }), isSecure: certificate != nil)
        let judgesHost = LoopbackAddress.contains(host) && tokens.isOpen
        // The inspector precedes the middleware that refuses requests, because refused requests are recorded too.
        let inspection = parts.inspector.map {
            InspectionMiddleware(inspector: $0, uploadPath: uploads.path, scheme: scheme) as RouteMiddleware
        }
        return [TraceMiddleware(), RequestLog(report: onRequest)] + (inspection.map { [$0] } ?? []) + [
            RecordEventMiddleware { parts.note($0) },
            OriginMiddleware(policy: origins),
            ProblemMiddleware(),
            HostMiddleware(
                allowed: judgesHost ? Set(allowedHosts.map(Authority.normalName)) : nil, meter: parts.meter),
            AccessMiddleware(tokens: tokens, origins: origins, uploadPath: uploads.path, meter: parts.meter),
        ]
    }

    /// Makes all routes together, because the upload path may be one of the receiver's own paths.
    func routes(of parts: Parts) -> Routes<BasicRequestContext> {
        var routes = Routes<BasicRequestContext>()
        routes.addUploads(
            to: parts.store, options: uploads, meter: parts.meter, shares: parts.shares, limit: parts.keeper?.limit)
        addPages(
            to: &routes, of: parts.store, live: parts.live, inspector: parts.inspector,
            budget: ResponseBudget(parts.shares), hasThumbnails: parts.local != nil && thumbnailCommand != nil)
        if let local = parts.local { addThumbnails(of: local, parts.shares, to: &routes) }
        addStatus(of: parts.store, parts.meter, to: &routes)
        let page = MetricsPage(
            collector: parts.metrics, shares: parts.shares, local: parts.local, webhooks: parts.webhooks,
            started: Date())
        routes.addReading("/metrics") { _, _, _ in await page.response() }
        if let webhooks = parts.webhooks { routes.addReading("/webhooks") { _, _, _ in try webhooks.response() } }
        return routes
    }
}
