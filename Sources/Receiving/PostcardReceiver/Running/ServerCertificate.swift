public import PostcardForm
import PostcardFoundation
public import SystemPackage

#if TLS || CommandLine
import NIOSSL
import PostcardFiles
#endif

/// A certificate and its private key, for connections over TLS.
public struct ServerCertificate: Sendable, Hashable {
    /// A PEM file with the certificate, followed by its intermediate certificates.
    public var chain: FilePath
    /// A PEM file with the certificate's private key.
    public var privateKey: FilePath

    /// Makes a certificate from two PEM files, which are read when the server starts.
    public init(chain: FilePath, privateKey: FilePath) {
        self.chain = chain
        self.privateKey = privateKey
    }

    #if TLS || CommandLine
    func configuration() throws(ServerCertificateError) -> TLSConfiguration {
        let certificates = try reading(chain, "certificate") {
            try NIOSSLCertificate.fromPEMBytes($0).map { NIOSSLCertificateSource.certificate($0) }
        }
        guard !certificates.isEmpty else {
            throw ServerCertificateError(message: "The file \(chain) holds no certificate. Give a PEM file.")
        }
        let key = try reading(privateKey, "private key") { try NIOSSLPrivateKey(bytes: $0, format: .pem) }
        let configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: certificates, privateKey: .privateKey(key))
        // Making a TLS context of both files checks whether the key belongs to the certificate.
        do {
            _ = try NIOSSLContext(configuration: configuration)
        } catch {
            throw ServerCertificateError(
                message: "The private key in \(privateKey) does not belong to the certificate in \(chain): \(error)")
        }
        return configuration
    }

    private func reading<Value>(
        _ path: FilePath, _ kind: String, _ read: ([UInt8]) throws -> Value
    ) throws(ServerCertificateError) -> Value {
        do {
            return try read(SmallFile.bytes(of: path))
        } catch let error as SmallFile.ReadError {
            throw ServerCertificateError(message: "The file \(path) of the \(kind) \(error)")
        } catch {
            throw ServerCertificateError(
                message: "The \(kind) in \(path) cannot be read: \(error). Give a PEM file that may be read.")
        }
    }
    #endif
}

/// Why a certificate or its key cannot be used.
public struct ServerCertificateError: PostcardError {
    /// What is wrong with the file, and what to do.
    public let message: String
}
