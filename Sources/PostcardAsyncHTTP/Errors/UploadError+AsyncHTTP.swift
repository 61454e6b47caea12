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
    /// What an error of AsyncHTTPClient or of whatever is below it says about an upload. A `FormError`, a
    /// cancellation, and what is an ``UploadError`` already pass unchanged; the errors of the form's own streams,
    /// which can be of any type, do not come here.
    static func mapping(_ error: any Error, of url: URL) -> any Error {
        #if canImport(Network)
        if let error = mappingNetworkFramework(error, of: url) { return error }
        #endif
        return switch error {
        case let error as NIOConnectionError:
            connectionFailed(to: url, reason(of: error), underlying: error)
        case let error as HTTPClientError:
            mapping(error, of: url)
        case let error as IOError where error.isAboutConnecting:
            connectionFailed(to: url, error.localizedReason, underlying: error)
        case let error as IOError:
            connectionLost(to: url, error.localizedReason, underlying: error)
        case HTTPParserError.invalidEOFState:
            connectionLost(to: url, "the answer is cut off", underlying: error)
        case let error as HTTPParserError:
            connectionLost(to: url, "the answer is no valid HTTP: \(error.debugDescription)", underlying: error)
        case is ChannelError:
            connectionLost(to: url, "it was closed", underlying: error)
        case is NIOSSLError, is NIOSSLExtraError, is BoringSSLError:
            tls(with: url, reasonOfTLS(error), underlying: error)
        case is UploadError, is FormError, is CancellationError:
            error
        default:
            connectionLost(to: url, "\(error)", underlying: error)
        }
    }

    /// For a person; what BoringSSL says in full is in the underlying error.
    private static func reasonOfTLS(_ error: any Error) -> String {
        "\(error)".contains("CERTIFICATE_VERIFY_FAILED")
            ? "its certificate is not trusted" : "the TLS handshake failed; perhaps the server expects http://"
    }

    #if canImport(Network)
    /// On Apple platforms the connections are Network.framework's, which tells errors in its own way.
    private static func mappingNetworkFramework(_ error: any Error, of url: URL) -> UploadError? {
        switch error {
        case NWError.dns:
            connectionFailed(to: url, "there is no such host", underlying: error)
        case let error as HTTPClient.NWTLSError:
            tls(with: url, error.description, underlying: error)
        case let error as HTTPClient.NWPOSIXError:
            switch error.errorCode {
            case .ECONNREFUSED, .EHOSTUNREACH, .ENETUNREACH, .ENETDOWN, .EHOSTDOWN:
                connectionFailed(to: url, error.description, underlying: error)
            default:
                connectionLost(to: url, error.description, underlying: error)
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
            timedOut(url, .connecting, after: nil, underlying: error)
        case .readTimeout:
            timedOut(url, .waiting, after: nil, underlying: error)
        case .writeTimeout:
            timedOut(url, .sending, after: nil, underlying: error)
        case .cancelled:
            CancellationError()
        case .proxyAuthenticationRequired, .invalidProxyResponse:
            connectionFailed(to: url, error.shortDescription, underlying: error)
        case .remoteConnectionClosed:
            connectionLost(to: url, "the server closed it", underlying: error)
        default:
            connectionLost(to: url, error.shortDescription, underlying: error)
        }
    }

    private static func reason(of error: NIOConnectionError) -> String {
        if let failure = error.connectionErrors.first {
            return (failure.error as? IOError)?.localizedReason ?? "\(failure.error)"
        }
        return error.dnsAError == nil && error.dnsAAAAError == nil ? "nobody answers there" : "there is no such host"
    }
}

extension IOError {
    /// Whether it is one that only connecting gives: nothing can have been sent.
    fileprivate var isAboutConnecting: Bool {
        [ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, EHOSTDOWN, ENETDOWN, EADDRNOTAVAIL].contains(errnoCode)
    }

    /// What the system calls it, such as "Connection refused".
    fileprivate var localizedReason: String {
        String(cString: strerror(errnoCode))
    }
}
