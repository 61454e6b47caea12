public import HTTPTypes

#if canImport(FoundationNetworking)
import Foundation
public import FoundationNetworking
#else
public import Foundation
#endif

/// Sends uploads with URLSession.
///
/// The transport has its own session, without cookies and caches. Copies of the transport share the session, which ends
/// with the last copy. The form is streamed. On Apple platforms the request has a `Content-Length` if the form's length
/// is known. URLSession on Linux ignores the length of a stream. So a form of known length up to 1 MiB is read into
/// memory there and sent with its `Content-Length`. A larger form is sent in chunks, which some servers refuse with 411
/// or read as an empty form. For such servers, use `AsyncHTTPTransport`.
///
/// On Linux all sessions of a program share one queue, which also waits for a form's own streams. While such a stream
/// has no bytes ready, other transfers of URLSession wait too, and cannot be cancelled. URLSession on Linux also keeps
/// a processor busy while it waits for a response. `AsyncHTTPTransport` has neither problem.
public struct URLSessionTransport: UploadTransport {
    private let connections: URLSessionConnections

    /// The `httpAdditionalHeaders` of the configuration.
    public let defaultHeaderFields: HTTPFields

    /// The largest form, in bytes, that is read into memory to be sent with its length on Linux.
    private let maximumBytesInMemory: Int

    /// Makes a transport.
    ///
    /// - Parameters:
    ///   - configuration: The configuration of the session, which is copied. Its timeouts can only shorten those of
    ///     ``UploadClient/timeouts``. Its `httpAdditionalHeaders` become ``defaultHeaderFields``, because the session
    ///     would also send them after a redirect to another origin.
    ///   - maximumBytesInMemory: The largest form of known length, in bytes, that is read into memory on Linux and sent
    ///     with its `Content-Length`. Defaults to 1 MiB. Apple platforms stream every form.
    public init(
        configuration: URLSessionConfiguration = URLSessionTransport.configuration(),
        maximumBytesInMemory: Int = 1 << 20
    ) {
        let session = configuration.copy() as? URLSessionConfiguration ?? configuration
        defaultHeaderFields = HTTPFields(session.httpAdditionalHeaders ?? [:])
        session.httpAdditionalHeaders = nil
        connections = URLSessionConnections(session)
        self.maximumBytesInMemory = maximumBytesInMemory
    }

    /// A configuration without cookies, caches and stored credentials. Its timeouts are longer than those of a client.
    ///
    /// Without a network an upload fails at once. On Apple platforms you can set `waitsForConnectivity`, so that the
    /// upload reports ``TransportEvent/waitingForNetwork`` and waits.
    public static func configuration() -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpCookieStorage = nil
        configuration.httpShouldSetCookies = false
        configuration.urlCache = nil
        configuration.urlCredentialStorage = nil
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        // The timeout is a week, the system's own limit for a transfer.
        configuration.timeoutIntervalForRequest = 604_800
        configuration.timeoutIntervalForResource = 604_800
        return configuration
    }

    /// Returns whether a body is sent with its `Content-Length`. On Linux, this is true up to `maximumBytesInMemory`.
    public func sendsContentLength(of bytes: Int64) -> Bool {
        #if canImport(FoundationNetworking)
        bytes <= maximumBytesInMemory
        #else
        true
        #endif
    }

    public func send(
        _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
    ) async throws -> UploadResponse {
        let upload = URLSessionUpload(
            request, content: try await content(of: request, reporting: report), on: connections, reporting: report)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { upload.start($0) }
        } onCancel: {
            upload.cancel(CancellationError())
        }
    }

    /// The bytes of a body that is sent from memory; `nil` if the body is streamed.
    ///
    /// - Throws: The errors of the body's reader.
    private func content(
        of request: UploadRequest, reporting report: @Sendable (TransportEvent) -> Void
    ) async throws -> Data? {
        #if canImport(FoundationNetworking)
        guard let body = request.body, let length = body.contentLength, sendsContentLength(of: length) else {
            return nil
        }
        let reader = try body.reader()
        var bytes = Data(count: Int(length))
        var count = 0
        while count < bytes.count {
            // Waiting for the form's streams or the rate limit does not count as idle time.
            if reader.needsPreparation { report(.sent(bytes: 0)) }
            guard try await reader.prepare() else { break }
            count += try bytes.withUnsafeMutableBytes {
                try reader.read(into: UnsafeMutableRawBufferPointer(rebasing: $0[count...]))
            }
        }
        return bytes
        #else
        return nil
        #endif
    }
}

extension HTTPFields {
    /// The header fields of a session's configuration, except invalid ones.
    fileprivate init(_ additionalHeaders: [AnyHashable: Any]) {
        self.init()
        for (name, value) in additionalHeaders {
            guard let name = (name as? String).flatMap({ HTTPField.Name($0) }) else { continue }
            append(HTTPField(name: name, value: "\(value)"))
        }
    }
}
