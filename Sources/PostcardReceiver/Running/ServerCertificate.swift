import NIOSSL
public import SystemPackage

/// What a receiver shows to prove that it is the host that its clients look for.
public struct ServerCertificate: Sendable, Hashable {
    /// A PEM file with the certificate and behind it those that lead to a root.
    public var chain: FilePath
    /// A PEM file with the certificate's private key.
    public var privateKey: FilePath

    /// Names the files; they are read when the server starts.
    public init(chain: FilePath, privateKey: FilePath) {
        self.chain = chain
        self.privateKey = privateKey
    }

    func configuration() throws(ServerCertificateError) -> TLSConfiguration {
        let certificates = try reading(chain, "certificate") {
            try NIOSSLCertificate.fromPEMFile($0).map { NIOSSLCertificateSource.certificate($0) }
        }
        guard !certificates.isEmpty else {
            throw ServerCertificateError(message: "The file \(chain) holds no certificate. Give a PEM file.")
        }
        let key = try reading(privateKey, "private key") { try NIOSSLPrivateKey(file: $0, format: .pem) }
        let configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: certificates, privateKey: .privateKey(key))
        // A key that is another certificate's is found only where both are used.
        do {
            _ = try NIOSSLContext(configuration: configuration)
        } catch {
            throw ServerCertificateError(
                message: "The private key in \(privateKey) is not that of the certificate in \(chain): \(error)")
        }
        return configuration
    }

    private func reading<Value>(
        _ path: FilePath, _ kind: String, _ read: (String) throws -> Value
    ) throws(ServerCertificateError) -> Value {
        do {
            return try read(path.string)
        } catch {
            throw ServerCertificateError(
                message: "The \(kind) in \(path) cannot be read: \(error). Give a PEM file that may be read.")
        }
    }
}

/// Why a certificate or its key cannot be used.
public struct ServerCertificateError: Error, Sendable, CustomStringConvertible {
    /// What is wrong with which file, and what to do.
    public let message: String

    public var description: String { message }
}
