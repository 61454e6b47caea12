import Foundation
import Testing

@testable import PostcardClient

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Errors of URLSession on Linux, which has one code for all failures between connecting and sending.
@Suite struct ConnectionErrorTests {
    /// What libcurl 7.88 says with OpenSSL 3, and later versions and GnuTLS where they say something else.
    private static let descriptions: [(String, UploadError.Code)] = [
        ("OpenSSL SSL_connect: SSL_ERROR_SYSCALL in connection to 127.0.0.1:443", .connectionLost),
        ("OpenSSL SSL_connect: Connection reset by peer in connection to example.org:443", .connectionLost),
        ("OpenSSL SSL_read: error:0A000126:SSL routines::unexpected eof while reading, errno 0", .connectionLost),
        ("TLS connect error: error:0A000126:SSL routines::unexpected eof while reading", .connectionLost),
        ("Send failure: Connection reset by peer", .connectionLost),
        ("Recv failure: Connection reset by peer", .connectionLost), ("Send failure: Broken pipe", .connectionLost),
        ("getpeername() failed with errno 107: Transport endpoint is not connected", .connectionLost),
        ("Empty reply from server", .connectionLost),
        ("gnutls_handshake() failed: The TLS connection was non-properly terminated.", .connectionLost),
        ("OpenSSL/3.0.19: error:0A00010B:SSL routines::wrong version number", .tls),
        ("OpenSSL/3.0.19: error:0A000410:SSL routines::sslv3 alert handshake failure", .tls),
        ("SSL certificate problem: self-signed certificate", .tls),
        ("SSL: no alternative certificate subject name matches target host name 'example.org'", .tls),
        ("TLS connect error: error:0A00010B:SSL routines::wrong version number", .tls),
        ("gnutls_handshake() failed: Handshake failed", .tls),
        ("server certificate verification failed. CAfile: none CRLfile: none", .tls),
    ]

    @Test(arguments: descriptions)
    func `a connection that was lost before anything was sent may be tried again, and a refused certificate not`(
        description: String, code: UploadError.Code
    ) throws {
        let url = try #require(URL(string: "https://example.org/uploads"))
        let cause = URLError(.unknown, userInfo: [NSLocalizedDescriptionKey: description])
        let error = UploadError(cause, of: url, bytesSent: 0)
        #expect(error.code == code)
        #expect(error.message.contains(description))
    }

    @Test(
        arguments: [
            (.secureConnectionFailed, 0, .tls, .passes), (.secureConnectionFailed, 1, .connectionLost, nil),
            (.serverCertificateUntrusted, 0, .tls, .passesElsewhere),
            (.serverCertificateHasBadDate, 0, .tls, .passesElsewhere),
            (.serverCertificateHasUnknownRoot, 0, .tls, .passesElsewhere),
            (.serverCertificateNotYetValid, 0, .tls, .passesElsewhere),
            (.clientCertificateRejected, 0, .tls, .passesElsewhere),
            (.clientCertificateRequired, 0, .tls, .lasts),
            (.appTransportSecurityRequiresSecureConnection, 0, .tls, .lasts),
        ] as [(URLError.Code, Int64, UploadError.Code, UploadError.Outlook?)])
    func `a secure connection that failed may be made later, unless the app or the server forbids it`(
        code: URLError.Code, bytesSent: Int64, expected: UploadError.Code, failure: UploadError.Outlook?
    ) throws {
        let url = try #require(URL(string: "https://example.org/uploads"))
        let error = UploadError(URLError(code), of: url, bytesSent: bytesSent)
        #expect(error.code == expected && error.outlook == failure)
        if failure != nil { #expect(error.delivery == .neverArrived && error.advice?.isEmpty == false) }
    }

    @Test(arguments: [
        ("SSL certificate problem: self-signed certificate", UploadError.Outlook.passesElsewhere),
        ("TLS connect error: error:0A00010B:SSL routines::wrong version number", .passes),
    ])
    func `libcurl's words tell a certificate from a handshake`(
        description: String, failure: UploadError.Outlook
    ) throws {
        let url = try #require(URL(string: "https://example.org/uploads"))
        let cause = URLError(.unknown, userInfo: [NSLocalizedDescriptionKey: description])
        #expect(UploadError(cause, of: url, bytesSent: 0).outlook == failure)
    }

    @Test(arguments: [URLError.notConnectedToInternet, .dataNotAllowed, .internationalRoamingOff, .callIsActive])
    func `without a network nothing was sent, unless it went away during the upload`(code: URLError.Code) throws {
        let url = try #require(URL(string: "https://example.org/uploads"))
        let before = UploadError(URLError(code), of: url, bytesSent: 0)
        #expect(before.code == .connectionFailed && before.delivery == .neverArrived)
        let during = UploadError(URLError(code), of: url, bytesSent: 1)
        #expect(during.code == .connectionLost && during.delivery == .responseLost)
    }

    @Test func `nothing is said about encryption once bytes were sent, or without it`() throws {
        let cause = URLError(.unknown, userInfo: [NSLocalizedDescriptionKey: "SSL certificate problem"])
        for (text, bytesSent) in [("https://example.org/", 1), ("http://example.org/", 0)] as [(String, Int64)] {
            let url = try #require(URL(string: text))
            #expect(UploadError(cause, of: url, bytesSent: bytesSent).code == .connectionLost)
        }
    }
}
