import PostcardTestSupport
import SystemPackage
import Testing

/// A certificate for 127.0.0.1 that nobody trusts unless told to.
struct TestCertificate {
    let chain: FilePath
    let privateKey: FilePath

    /// Makes one in a directory, with openssl.
    init(in directory: FilePath) async throws {
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
