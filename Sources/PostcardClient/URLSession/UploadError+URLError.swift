package import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension UploadError {
    /// What an error of URLSession says about an upload.
    package init(_ error: any Error, of url: URL, bytesSent: Int64) {
        let reason = (error as NSError).localizedDescription
        switch (error as? URLError)?.code {
        case .cannotFindHost, .dnsLookupFailed:
            self = .connectionFailed(to: url, "there is no such host", underlying: error)
        case .cannotConnectToHost:
            self = .connectionFailed(to: url, "nobody answers there", underlying: error)
        case .notConnectedToInternet, .dataNotAllowed, .internationalRoamingOff, .callIsActive:
            self = .connectionFailed(to: url, reason, underlying: error)
        case .secureConnectionFailed, .serverCertificateHasBadDate, .serverCertificateUntrusted,
            .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid, .clientCertificateRejected,
            .clientCertificateRequired, .appTransportSecurityRequiresSecureConnection:
            self = .tls(with: url, reason, underlying: error)
        case .unknown where url.scheme?.lowercased() == "https" && bytesSent == 0:
            // What URLSession on Linux says of every failure between connecting and sending.
            self = .tls(with: url, reason, underlying: error)
        case .timedOut:
            self = .timedOut(url, bytesSent == 0 ? .connecting : .sending, after: nil, underlying: error)
        default:
            self = .connectionLost(to: url, reason, underlying: error)
        }
    }
}
