package import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension UploadError {
    /// Converts an error of URLSession to an error of an upload.
    package init(_ error: any Error, of url: URL, bytesSent: Int64) {
        let reason = (error as NSError).localizedDescription
        switch (error as? URLError)?.code {
        case .cannotFindHost, .dnsLookupFailed:
            self = .connectionFailed(to: url, "there is no such host", underlyingError: error)
        case .cannotConnectToHost:
            self = .connectionFailed(to: url, "nothing is listening there", underlyingError: error)
        // If some of the body was sent, a missing network means a lost connection.
        case .some(let code) where bytesSent == 0 && Self.missingNetwork.contains(code):
            self = .connectionFailed(to: url, reason, underlyingError: error)
        // The system also reports this code if the server closes the connection without notice (-9816). If some of the
        // body was sent, the connection was lost.
        case .secureConnectionFailed where bytesSent == 0:
            self = .tls(.passes, with: url, reason, underlyingError: error)
        case .serverCertificateHasBadDate, .serverCertificateUntrusted, .serverCertificateHasUnknownRoot,
            .serverCertificateNotYetValid, .clientCertificateRejected:
            self = .tls(.passesElsewhere, with: url, reason, underlyingError: error)
        case .clientCertificateRequired, .appTransportSecurityRequiresSecureConnection:
            self = .tls(.lasts, with: url, reason, underlyingError: error)
        case .unknown where url.scheme?.lowercased() == "https" && bytesSent == 0 && Self.isAboutEncryption(reason):
            let outlook: Outlook = Self.isAboutCertificate(reason) ? .passesElsewhere : .passes
            self = .tls(outlook, with: url, reason, underlyingError: error)
        case .timedOut:
            self = .timedOut(url, bytesSent == 0 ? .connecting : .sending, after: nil, underlyingError: error)
        default:
            self = .connectionLost(to: url, reason, underlyingError: error)
        }
    }

    /// The domain and the code of the system's error, such as `NSURLErrorDomain -1005`; `nil` if there is none.
    package var systemCode: String? {
        underlyingError.map { error in
            let error = error as NSError
            return "\(error.domain) \(error.code)"
        }
    }

    private static let missingNetwork: Set<URLError.Code> = [
        .notConnectedToInternet, .dataNotAllowed, .internationalRoamingOff, .callIsActive,
    ]

    /// Whether a description by libcurl is about the encryption, and not about a lost connection.
    ///
    /// URLSession on Linux reports every failure between connecting and sending as unknown. Only libcurl's description
    /// shows whether the connection broke, which may pass, or the certificate is not trusted.
    static func isAboutEncryption(_ description: String) -> Bool {
        let text = description.lowercased()
        return !lossWords.contains { text.contains($0) } && encryptionWords.contains { text.contains($0) }
    }

    /// Whether a description by libcurl is about the server's certificate.
    private static func isAboutCertificate(_ description: String) -> Bool {
        let text = description.lowercased()
        return certificateWords.contains { text.contains($0) }
    }

    /// Texts in libcurl's descriptions that mean a lost connection, even if the description also mentions encryption.
    private static let lossWords = [
        "ssl_error_syscall", "unexpected eof", "connection reset", "broken pipe", "not properly terminated",
        "non-properly terminated", "timed out", "not connected", "empty reply",
    ]

    /// Texts in libcurl's descriptions of encryption failures, with OpenSSL or GnuTLS.
    private static let encryptionWords = certificateWords + ["ssl", "tls", "handshake", "cipher"]

    private static let certificateWords = ["certificate", "alternative name", "ca cert", "crl", "ocsp"]
}
