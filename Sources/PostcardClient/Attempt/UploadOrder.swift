import HTTPTypes
import PostcardForm

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What a caller wants uploaded, and where.
struct UploadOrder: Sendable {
    /// Lays out what is sent.
    let layout: @Sendable () throws(FormError) -> FormLayout
    let url: URL
    let method: HTTPRequest.Method
    let headerFields: HTTPFields
    /// The client's where it is `nil`.
    var acceptedStatuses: Set<Int>?
    /// The client's where it is `nil`.
    var acceptsEarlyAnswers: Bool?
    /// Where the server keeps what an earlier process has sent of it.
    var resource: URL?
    /// Writes down where the server keeps it.
    var keepResource: (@Sendable (URL?) throws -> Void)?

    init(
        form: MultipartForm, url: URL, method: HTTPRequest.Method, headerFields: HTTPFields,
        acceptedStatuses: Set<Int>? = nil
    ) {
        self.init(
            layout: { () throws(FormError) in try form.layout() }, url: url, method: method, headerFields: headerFields)
        self.acceptedStatuses = acceptedStatuses
    }

    init(
        layout: @escaping @Sendable () throws(FormError) -> FormLayout, url: URL, method: HTTPRequest.Method,
        headerFields: HTTPFields
    ) {
        self.layout = layout
        self.url = url
        self.method = method
        self.headerFields = headerFields
    }
}

extension UploadClient {
    /// Uploads what an order says.
    ///
    /// - Parameters:
    ///   - key: The key of an upload that may have been tried before; one is made where there is need of it.
    ///   - tell: Who is told of every step but the last.
    ///   - order: Makes the order; called once.
    func perform(
        under key: IdempotencyKey? = nil, telling tell: (@Sendable (UploadEvent) -> Void)?,
        _ order: @Sendable () throws -> UploadOrder
    ) async throws -> UploadResponse {
        let start = ContinuousClock.now
        tell?(.preparing)
        let order = try order()
        // Drawing one costs as much as reading a small file, and few want it.
        lazy var id = UUID().uuidString
        let log = UploadLog(logger, id: id)
        var fields = order.headerFields
        // What a URL says of its user is for this upload alone.
        for field in transport.defaultHeaderFields
        where !order.headerFields.contains(field.name) && (field.name != .authorization || order.url.user() == nil) {
            fields.append(field)
        }
        let sendsKey = retryPolicy.isOn || resumption != nil || !interceptors.isEmpty
        if let key = key ?? (sendsKey ? IdempotencyKey() : nil) {
            key.add(to: &fields)
        }
        if let requestIDField, !fields.contains(requestIDField) { fields[requestIDField] = id }
        let layout = try layout(of: order)
        if let expectContinueAbove, layout.contentLength ?? .max > expectContinueAbove {
            fields[.expect] = "100-continue"
        }
        let request = try UploadRequest(
            url: order.url, method: order.method, headerFields: fields, body: layout,
            maximumResponseBytes: maximumResponseBytes)
        var client = self
        if let acceptedStatuses = order.acceptedStatuses { client.acceptedStatuses = acceptedStatuses }
        if let acceptsEarlyAnswers = order.acceptsEarlyAnswers { client.acceptsEarlyAnswers = acceptsEarlyAnswers }
        let run = UploadRun(
            client, request, since: start, log: log,
            resuming: resumption.map { Resumption($0, resource: order.resource, keep: order.keepResource) },
            telling: tell)
        return try await run.response()
    }

    private func layout(of order: UploadOrder) throws(UploadError) -> FormLayout {
        var layout: FormLayout
        let problem: FormProblem?
        do {
            layout = try order.layout()
            problem = try rules?.problems(in: layout).first
        } catch {
            throw .form(error)
        }
        if let problem { throw .brokenRule(problem) }
        layout.pace = rateLimit
        if verification != nil { layout.observer = ContentDigests(of: layout.parts) }
        return layout
    }
}
