import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import PostcardClient
import PostcardForm

#if canImport(Network)
import Network
#endif

extension UploadError {
    /// Converts an error of AsyncHTTPClient or the layers below it to an upload's error. A `FormError`, a
    /// `CancellationError` and an ``UploadError`` are returned unchanged. Errors of the form's own
    /// streams are never passed to this method.
    ///
    /// - Parameter isBegun: Whether bytes of the request were sent. If `true`, an error that means a failure to connect
    ///   is converted to a lost connection.
    static func mapping(_ error: any Error, of url: URL, afterSending isBegun: Bool) -> any Error {
        let mapped = mapping(error, of: url)
        guard isBegun, let failure = mapped as? UploadError, failure.code == .connectionFailed else { return mapped }
        return connectionLost(to: url, "the network is gone", underlyingError: error)
    }

    private static func mapping(_ error: any Error, of url: URL) -> any Error {
        #if canImport(Network)
        if let error = mappingNetworkFramework(error, of: url) { return error }
        #endif
        return switch error {
        case let error as NIOConnectionError:
            connectionFailed(to: url, reason(of: error), underlyingError: error)
        case let error as HTTPClientError:
            mapping(error, of: url)
        case let error as IOError where error.isAboutConnecting:
            connectionFailed(to: url, error.localizedReason, underlyingError: error)
        case let error as IOError:
            connectionLost(to: url, error.localizedReason, underlyingError: error)
        case HTTPParserError.invalidEOFState:
            connectionLost(to: url, "the response is cut off", underlyingError: error)
        case let error as HTTPParserError:
            connectionLost(to: url, "the response is not valid HTTP: \(error.debugDescription)", underlyingError: error)
        case is ChannelError:
            connectionLost(to: url, "it was closed", underlyingError: error)
        case let error as NIOSSLError where error.isLoss:
            connectionLost(to: url, "the server closed it before it was secure", underlyingError: error)
        case is NIOSSLError, is NIOSSLExtraError, is BoringSSLError:
            mappingTLS(error, of: url)
        case is UploadError, is FormError, is CancellationError:
            error
        default:
            connectionLost(to: url, "\(error)", underlyingError: error)
        }
    }

    /// Converts a TLS error. The message has a short reason, and the underlying error has BoringSSL's full text.
    private static func mappingTLS(_ error: any Error, of url: URL) -> UploadError {
        let reason = "\(error)"
        if reason.contains("CERTIFICATE_VERIFY_FAILED") {
            return tls(.passesElsewhere, with: url, "its certificate is not trusted", underlyingError: error)
        }
        if reason.contains("CERTIFICATE_REQUIRED") {
            return tls(.lasts, with: url, "it requires a client certificate", underlyingError: error)
        }
        return tls(
            .passes, with: url, "the TLS handshake failed; perhaps the server expects http://",
            underlyingError: error)
    }

    #if canImport(Network)
    /// Converts an error of Network.framework, which makes the connections on Apple platforms.
    private static func mappingNetworkFramework(_ error: any Error, of url: URL) -> UploadError? {
        switch error {
        case NWError.dns:
            connectionFailed(to: url, "there is no such host", underlyingError: error)
        case let error as HTTPClient.NWTLSError:
            // The status -9816 is errSSLClosedNoNotify: the connection was closed without a TLS notification.
            tls(
                error.status == -9816 ? .passes : .passesElsewhere, with: url, error.description, underlyingError: error
            )
        case let error as HTTPClient.NWPOSIXError:
            switch error.errorCode {
            case .ECONNREFUSED, .EHOSTUNREACH, .ENETUNREACH, .ENETDOWN, .EHOSTDOWN:
                connectionFailed(to: url, error.description, underlyingError: error)
            default:
                connectionLost(to: url, error.description, underlyingError: error)
            }
        default:
            nil
        }
    }
    #endif

    private static func mapping(_ error: HTTPClientError, of url: URL) -> any Error {
        switch error {
        case .connectTimeout, .getConnectionFromPoolTimeout, .tlsHandshakeTimeout, .httpProxyHandshakeTimeout,
            .socksHandshakeTimeout:
            timedOut(url, .connecting, after: nil, underlyingError: error)
        case .readTimeout:
            timedOut(url, .waiting, after: nil, underlyingError: error)
        case .writeTimeout:
            timedOut(url, .sending, after: nil, underlyingError: error)
        case .cancelled:
            CancellationError()
        case .proxyAuthenticationRequired, .invalidProxyResponse:
            connectionFailed(to: url, error.shortDescription, underlyingError: error)
        case .remoteConnectionClosed:
            connectionLost(to: url, "the server closed it", underlyingError: error)
        default:
            connectionLost(to: url, error.shortDescription, underlyingError: error)
        }
    }

    private static func reason(of error: NIOConnectionError) -> String {
        if let failure = error.connectionErrors.first {
            return (failure.error as? IOError)?.localizedReason ?? "\(failure.error)"
        }
        return error.dnsAError == nil && error.dnsAAAAError == nil
            ? "nothing is listening there" : "there is no such host"
    }
}

extension NIOSSLError {
    /// Whether the error means that the connection was lost, rather than that encryption was refused.
    fileprivate var isLoss: Bool {
        self == .uncleanShutdown || self == .handshakeFailed(.sslError([.eofDuringHandshake]))
    }
}

extension IOError {
    /// Whether the error can occur only while connecting, before anything was sent.
    fileprivate var isAboutConnecting: Bool {
        [ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, EHOSTDOWN, ENETDOWN, EADDRNOTAVAIL].contains(errnoCode)
    }

    /// The system's description, such as "Connection refused".
    fileprivate var localizedReason: String {
        String(cString: strerror(errnoCode))
    }
}
