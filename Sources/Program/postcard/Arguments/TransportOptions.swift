import ArgumentParser
import AsyncHTTPClient
import CCurlLoader
import Foundation
import NIOCore
import NIOSSL
import PostcardAsyncHTTP
import PostcardClient
import PostcardWire

/// The options for the connection to a server, with the names of curl's options.
struct TransportOptions: ParsableArguments {
    /// The HTTP client that sends the request.
    enum Transport: String, ExpressibleByArgument, CaseIterable {
        case asyncHTTP = "async-http"
        case urlSession = "urlsession"
    }

    @Option(
        help: ArgumentHelp(
            "Which HTTP client carries the request.",
            discussion:
                "The other options of the connection, apart from the proxies of the environment, are for async-http."
        ))
    var transport = Transport.asyncHTTP

    @Option(
        help: ArgumentHelp(
            "A file of certificates (PEM) that are trusted instead of the system's.",
            discussion: "Defaults to the file that SSL_CERT_FILE names, if it names one.", valueName: "file"))
    var cacert: String?

    @Flag(
        name: [.customShort("k"), .long], help: "Accept any certificate of the server. Anyone can then read the form.")
    var insecure = false

    @Option(
        help: ArgumentHelp("The client's certificate (PEM), with those of its issuers.", valueName: "file"))
    var cert: String?

    @Option(
        help: ArgumentHelp(
            "The private key of the client's certificate (PEM).", discussion: "Defaults to the file of --cert.",
            valueName: "file"))
    var key: String?

    @Option(
        name: [.customShort("x"), .long],
        help: ArgumentHelp(
            "The proxy that connections are made through: http://[user:password@]host:port or socks5://host:port.",
            discussion: """
                Defaults to http_proxy or https_proxy of the environment, and then all_proxy, except for the hosts in \
                no_proxy. An empty value means no proxy. A proxy of HTTP must allow CONNECT. A queue, which sends to \
                several hosts, uses only this option.
                """,
            valueName: "url"))
    var proxy: String?

    @Option(
        help: ArgumentHelp(
            "Connect to this address instead of the one that the host's name has; repeatable.",
            discussion: "For a host that a redirect leads to, the address is that of all its ports.",
            valueName: "host:port:address"))
    var resolve: [String] = []

    @Option(
        help: ArgumentHelp(
            "How long connecting may take, in seconds. Defaults to \(Self.usualConnectSeconds).", valueName: "seconds"))
    var connectTimeout: Double?

    private static var usualConnectSeconds: Int64 {
        (AsyncHTTPTransport.configuration().timeout.connect?.nanoseconds ?? 0) / 1_000_000_000
    }

    enum Version: String, EnumerableFlag {
        case http1
        case http2

        static func name(for value: Version) -> NameSpecification {
            switch value {
            case .http1: .customLong("http1.1")
            case .http2: .customLong("http2")
            }
        }

        static func help(for value: Version) -> ArgumentHelp? {
            switch value {
            case .http1: "Use HTTP/1.1 even if the server offers HTTP/2."
            case .http2: "Use HTTP/2 where an https server offers it. This is the default."
            }
        }
    }

    @Flag(exclusivity: .exclusive)
    var version: Version?

    enum LowestTLS: String, EnumerableFlag {
        case tls12 = "tlsv1.2"
        case tls13 = "tlsv1.3"

        static func name(for value: LowestTLS) -> NameSpecification { .customLong(value.rawValue) }

        static func help(for value: LowestTLS) -> ArgumentHelp? {
            "Use TLS 1.\(value == .tls12 ? 2 : 3) or newer."
        }
    }

    @Flag(exclusivity: .chooseLast)
    var lowestTLS: LowestTLS?

    func validate() throws {
        if let connectTimeout, !(0.001...31_536_000).contains(connectTimeout) {
            throw ValidationError("The connect timeout must be from a thousandth of a second to a year.")
        }
        if key != nil, cert == nil { throw ValidationError("A key needs its certificate: add --cert FILE.") }
        for argument in resolve { _ = try Resolution(argument) }
        if let proxy, !proxy.isEmpty { _ = try Self.proxy(proxy) }
        guard transport == .urlSession, let option = optionsOfAsyncHTTP.first else { return }
        throw ValidationError("URLSession has no \(option). Leave out --transport urlsession.")
    }

    private var optionsOfAsyncHTTP: [String] {
        let given: [(String, Bool)] = [
            ("--cacert", cacert != nil), ("--insecure", insecure), ("--cert", cert != nil), ("--proxy", proxy != nil),
            ("--resolve", !resolve.isEmpty), ("--connect-timeout", connectTimeout != nil),
            ("--http1.1", version == .http1), ("--http2", version == .http2),
            ("--\(lowestTLS?.rawValue ?? "")", lowestTLS != nil),
        ]
        return given.filter(\.1).map(\.0)
    }

    /// Makes the transport that the options describe. `url` is the server's URL, by which a proxy is chosen from the
    /// environment variables. Throws ``CommandFailure`` if this machine lacks what the client needs, or certificates
    /// cannot be read.
    func make(for url: URL?) throws -> any UploadTransport {
        switch transport {
        case .asyncHTTP:
            var transport = AsyncHTTPTransport(configuration: try configuration(for: url))
            transport.readsFilesOnEventLoops = true
            return transport
        case .urlSession:
            guard curl_loader_load() else {
                throw CommandFailure(
                    description: "URLSession needs libcurl.so.4, which this machine does not have. Install "
                        + "libcurl, or use --transport async-http.", status: ExitStatus.failed)
            }
            return URLSessionTransport()
        }
    }

    private func configuration(for url: URL?) throws -> HTTPClient.Configuration {
        var configuration =
            connectTimeout.map { AsyncHTTPTransport.configuration(connectTimeout: .seconds($0)) }
            ?? AsyncHTTPTransport.configuration()
        if version == .http1 { configuration.httpVersion = .http1Only }
        configuration.tlsConfiguration = try tls(for: url)
        for resolution in try resolve.map({ try Resolution($0) }) {
            guard let host = resolution.host(for: url) else { continue }
            configuration.dnsOverride[host] = resolution.address
        }
        let proxy = proxy ?? url.flatMap { ProxyEnvironment().proxy(for: $0) } ?? ""
        if !proxy.isEmpty { configuration.proxy = try Self.proxy(proxy) }
        return configuration
    }

    /// The settings of TLS; `nil` for the default settings.
    private func tls(for url: URL?) throws -> TLSConfiguration? {
        let trusted = try trustedCertificates(for: url)
        guard trusted != nil || insecure || cert != nil || lowestTLS != nil else { return nil }
        var tls = TLSConfiguration.makeClientConfiguration()
        if let lowestTLS { tls.minimumTLSVersion = lowestTLS == .tls12 ? .tlsv12 : .tlsv13 }
        if insecure { tls.certificateVerification = .none }
        if let trusted { tls.trustRoots = trusted }
        if let cert {
            tls.certificateChain = try Self.certificates(in: cert).map { .certificate($0) }
            tls.privateKey = .privateKey(
                try Self.read(key ?? cert, "has no private key (PEM) without a passphrase") {
                    try NIOSSLPrivateKey(bytes: $0, format: .pem)
                })
        }
        return tls
    }

    /// The certificates to trust; `nil` for those of the system.
    private func trustedCertificates(for url: URL?) throws -> NIOSSLTrustRoots? {
        if let cacert { return .certificates(try Self.certificates(in: cacert)) }
        guard let file = ProcessInfo.processInfo.environment["SSL_CERT_FILE"], !file.isEmpty else { return nil }
        // A server without TLS needs no certificates, but may redirect to one with TLS. If the file is missing, no
        // server with TLS is trusted.
        guard url?.scheme?.lowercased() != "http" else {
            return FileManager.default.isReadableFile(atPath: file) ? .file(file) : .certificates([])
        }
        return .certificates(try Self.certificates(in: file))
    }

    private static func certificates(in path: String) throws -> [NIOSSLCertificate] {
        let problem = "has no certificate (PEM)"
        let certificates = try read(path, problem) { try NIOSSLCertificate.fromPEMBytes($0) }
        guard !certificates.isEmpty else { throw CommandFailure.input(path, problem) }
        return certificates
    }

    private static func read<Value>(
        _ path: String, _ problem: String, _ read: ([UInt8]) throws -> Value
    ) throws -> Value {
        let bytes = try TextFile(path).bytes
        do {
            return try read(bytes)
        } catch {
            throw CommandFailure.input(path, problem)
        }
    }

    /// Parses a proxy that is given as a URL or as a host and port.
    private static func proxy(_ text: String) throws -> HTTPClient.Configuration.Proxy {
        let url = URLComponents(string: text.contains("://") ? text : "http://\(text)")
        guard let url, let host = url.host, !host.isEmpty, Port.valid.contains(url.port ?? 1080) else {
            // The message leaves out the text, which may contain a password.
            throw ValidationError("The proxy is not a URL with a host. Write it as http://host:port.")
        }
        switch url.scheme?.lowercased() {
        case "http":
            let authorization = url.user.map {
                HTTPClient.Authorization.basic(username: $0, password: url.password ?? "")
            }
            return .server(host: host, port: url.port ?? 1080, authorization: authorization)
        case "socks5", "socks5h": return .socksServer(host: host, port: url.port ?? 1080)
        default: throw ValidationError("A proxy is http or socks5, not '\(url.scheme ?? "")'.")
        }
    }

    /// The host, port and address of a `--resolve`.
    private struct Resolution {
        let host: String
        let port: Int
        let address: String

        init(_ argument: String) throws {
            let pieces = argument.split(separator: ":", maxSplits: 2)
            guard pieces.count == 3, let port = Int(pieces[1]), Port.valid.contains(port) else {
                throw ValidationError("'\(argument)' is not host:port:address, such as example.com:443:127.0.0.1.")
            }
            host = String(pieces[0])
            self.port = port
            address = pieces[2].trimmingCharacters(in: ["[", "]"])
            guard !address.isEmpty else { throw ValidationError("'\(argument)' has no address.") }
        }

        /// The host whose address is replaced, in lower case; `nil` if this option is for another port of the URL's
        /// host.
        ///
        /// The client replaces the address of a host for all ports. A host other than the URL's is replaced too,
        /// because redirects and queues may lead to it.
        func host(for url: URL?) -> String? {
            guard let url, let host = url.host(), host.lowercased() == self.host.lowercased() else {
                return self.host.lowercased()
            }
            return url.portOrDefault == port ? host : nil
        }
    }
}

/// The proxies in environment variables, by the rules of curl.
struct ProxyEnvironment {
    private let variables: [String: String]

    /// Reads the proxies from environment variables.
    init(_ variables: [String: String] = ProcessInfo.processInfo.environment) {
        self.variables = variables
    }

    /// The proxy for a URL; `nil` if there is none.
    func proxy(for url: URL) -> String? {
        guard let scheme = url.scheme?.lowercased(), let host = url.host()?.lowercased() else { return nil }
        // A web server passes a request's field Proxy to its programs in HTTP_PROXY, so that variable is not read.
        let names = scheme == "https" ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy"]
        let proxy = (names + ["all_proxy", "ALL_PROXY"]).lazy.compactMap { variables[$0] }.first
        guard let proxy, !proxy.isEmpty, !isExcluded(host) else { return nil }
        return proxy
    }

    private func isExcluded(_ host: String) -> Bool {
        let list = variables["no_proxy"] ?? variables["NO_PROXY"] ?? ""
        return list.lowercased().split { $0 == "," || $0.isWhitespace }.contains { entry in
            let domain = entry.drop { $0 == "." }
            return entry == "*" || host == domain || host.hasSuffix(".\(domain)")
        }
    }
}
