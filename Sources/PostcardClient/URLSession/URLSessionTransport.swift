import HTTPTypes
import PostcardForm

#if canImport(FoundationNetworking)
import Foundation
public import FoundationNetworking
#else
public import Foundation
#endif

/// Carries uploads by URLSession.
///
/// It has a session of its own, without cookies and caches, which its copies share and which ends with the last
/// of them. The form is streamed: on Apple platforms with a `Content-Length` where the form's length is known,
/// on Linux always in chunks, because URLSession there ignores the length of a stream. Servers that want a
/// length are better served by `AsyncHTTPTransport`.
public struct URLSessionTransport: UploadTransport {
    private let connections: Connections

    /// The session, ended when nobody holds it any more: a session keeps its delegate and its threads alive
    /// until it is told to end.
    private final class Connections: Sendable {
        let session: URLSession
        let delegate = URLSessionUploads()

        init(_ configuration: URLSessionConfiguration) {
            session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
        }

        deinit {
            session.finishTasksAndInvalidate()
        }
    }

    /// Makes a transport.
    ///
    /// - Parameter configuration: The session's; later changes of it do nothing. Timeouts are
    ///   ``UploadClient/idleTimeout``'s business: the configuration's own can only shorten it.
    public init(configuration: URLSessionConfiguration = URLSessionTransport.configuration()) {
        connections = Connections(configuration)
    }

    /// A configuration without cookies, caches and stored credentials, and with timeouts so long that the
    /// client's come first.
    public static func configuration() -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpCookieStorage = nil
        configuration.httpShouldSetCookies = false
        configuration.urlCache = nil
        configuration.urlCredentialStorage = nil
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        // A week: the system's own limit for a whole transfer.
        configuration.timeoutIntervalForRequest = 604_800
        configuration.timeoutIntervalForResource = 604_800
        return configuration
    }

    public func send(
        _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
    ) async throws -> UploadResponse {
        try Task.checkCancellation()
        let upload = try URLSessionUpload(request, reporting: report)
        let task = connections.session.uploadTask(withStreamedRequest: URLRequest(request))
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                upload.begin(task, continuation)
                connections.delegate.add(upload, for: task)
                task.resume()
            }
        } onCancel: {
            upload.cancel(CancellationError())
        }
    }
}

extension URLRequest {
    fileprivate init(_ request: UploadRequest) {
        self.init(url: request.url, cachePolicy: .reloadIgnoringLocalCacheData, timeoutInterval: 604_800)
        httpMethod = request.method.rawValue
        httpShouldHandleCookies = false
        for field in request.headerFields { addValue(field.value, forHTTPHeaderField: field.name.rawName) }
        #if canImport(FoundationNetworking)
        // libcurl would ask for a 100 (Continue) before a body in chunks and wait a second for it. A blank value
        // takes the field out; an empty one would be sent, and be refused by some servers.
        if value(forHTTPHeaderField: "Expect") == nil { setValue(" ", forHTTPHeaderField: "Expect") }
        #else
        if let length = request.body.contentLength { setValue("\(length)", forHTTPHeaderField: "Content-Length") }
        #endif
    }
}
