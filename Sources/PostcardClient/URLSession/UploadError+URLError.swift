package import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension UploadError {
    /// The error of an upload for an error of URLSession.
    package init(_ error: any Error, of url: URL, bytesSent: Int64) {
        let reason = (error as NSError).localizedDescription
        switch (error as? URLError)?.code {
        case .cannotFindHost, .dnsLookupFailed:
            self = .connectionFailed(to: url, "there is no such host", underlyingError: error)
        case .cannotConnectToHost:
            self = .connectionFailed(to: url, "nothing is listening there", underlyingError: error)
        case .notConnectedToInternet, .dataNotAllowed, .internationalRoamingOff, .callIsActive:
            self = .connectionFailed(to: url, reason, underlyingError: error)
        case .secureConnectionFailed, .serverCertificateHasBadDate, .serverCertificateUntrusted,
            .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid, .clientCertificateRejected,
            .clientCertificateRequired, .appTransportSecurityRequiresSecureConnection:
            self = .tls(with: url, reason, underlyingError: error)
        case .unknown where url.scheme?.lowercased() == "https" && bytesSent == 0:
            // URLSession on Linux reports every failure between connecting and sending like this.
            self = .tls(with: url, reason, underlyingError: error)
        case .timedOut:
            self = .timedOut(url, bytesSent == 0 ? .connecting : .sending, after: nil, underlyingError: error)
        default:
            self = .connectionLost(to: url, reason, underlyingError: error)
        }
    }
}
