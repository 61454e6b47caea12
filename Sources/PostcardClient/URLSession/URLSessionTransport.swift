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
/// on Linux always in chunks, because URLSession there ignores the length of a stream.
///
/// On Linux all sessions of a program share one queue, and a form's own stream is waited for on it: while such a
/// stream has nothing to give, other transfers of URLSession wait too. And URLSession there keeps a processor busy
/// while it awaits an answer. `AsyncHTTPTransport` does neither.
public struct URLSessionTransport: UploadTransport {
    private let connections: URLSessionConnections

    /// Makes a transport.
    ///
    /// - Parameter configuration: The session's; later changes of it do nothing. Timeouts are
    ///   ``UploadClient/idleTimeout``'s business: the configuration's own can only shorten it. Its
    ///   `httpAdditionalHeaders` go with every request, to another origin behind a redirect too: credentials belong
    ///   into the upload's header fields or an interceptor, which see to that.
    public init(configuration: URLSessionConfiguration = URLSessionTransport.configuration()) {
        connections = URLSessionConnections(configuration)
    }

    /// A configuration without cookies, caches and stored credentials, and with timeouts so long that the
    /// client's come first.
    ///
    /// Without a network an upload fails at once. On Apple platforms one whose configuration has
    /// `waitsForConnectivity` set reports ``TransportEvent/waitingForNetwork`` and waits.
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
        let upload = URLSessionUpload(request, on: connections, reporting: report)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { upload.start($0) }
        } onCancel: {
            upload.cancel(CancellationError())
        }
    }
}
