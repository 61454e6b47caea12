package import PostcardReceiver
import PostcardServer
import PostcardTestSupport
package import SystemPackage
import Testing

/// A self-signed certificate for 127.0.0.1.
package struct TestCertificate {
    package let chain: FilePath
    package let privateKey: FilePath

    /// Makes one in a directory, with openssl.
    package init(in directory: FilePath) async throws {
        chain = directory.appending("certificate.pem")
        privateKey = directory.appending("key.pem")
        let made = try await Program.run(
            "openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", privateKey.string,
                "-out", chain.string,
            ])
        try #require(made.status == 0, "\(made.messages)")
    }
}

/// Runs a receiver with TLS.
package func withSecureReceiver(
    _ configure: (inout Receiver) -> Void = { _ in },
    _ body: (_ receiver: RunningReceiver, _ certificate: String) async throws -> Void
) async throws {
    try await withTemporaryDirectory { directory in
        let certificate = try await TestCertificate(in: directory)
        try await withReceiver(in: directory.appending("received")) { receiver in
            receiver.certificate = ServerCertificate(chain: certificate.chain, privateKey: certificate.privateKey)
            configure(&receiver)
        } _: { receiver in
            try await body(receiver, certificate.chain.string)
        }
    }
}
