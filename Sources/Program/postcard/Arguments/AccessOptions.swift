import ArgumentParser
import Foundation
import PostcardReceiver
import PostcardServer
import PostcardWire
import SystemPackage

/// The options for access to `serve`, and for its certificate.
struct AccessOptions: ParsableArguments {
    @Option(
        help: "Require this token in Authorization: Bearer for posting, and for reading if there is no --read-token.")
    var token: String?

    @Option(help: ArgumentHelp("The same, with the tokens in a file, one per line.", valueName: "file"))
    var tokenFile: String?

    @Option(help: ArgumentHelp("Require this token for reading and deleting what was received.", valueName: "token"))
    var readToken: String?

    @Option(help: ArgumentHelp("The same, with the tokens in a file, one per line.", valueName: "file"))
    var readTokenFile: String?

    @Flag(
        help: ArgumentHelp(
            "Start without a token although other machines reach the address: anyone there may post, and unless there is a "
                + "--read-token also read and delete."))
    var open = false

    @Option(
        help: ArgumentHelp(
            "A host name that requests may use for a receiver that only this machine reaches; repeatable.",
            valueName: "name"))
    var allowHost: [String] = []

    @Option(
        help: ArgumentHelp(
            "An origin whose pages may post here and read the responses, such as https://app.example; repeatable.",
            valueName: "origin"))
    var allowOrigin: [String] = []

    @Option(
        help: ArgumentHelp("A PEM file with the certificate and its chain: connections use TLS.", valueName: "file"))
    var certificate: String?

    @Option(help: ArgumentHelp("A PEM file with the certificate's private key.", valueName: "file"))
    var privateKey: String?

    func validate() throws {
        guard (certificate == nil) == (privateKey == nil) else {
            throw ValidationError("--certificate and --private-key must be used together.")
        }
        for host in allowHost where !Self.isHost(host) {
            throw ValidationError(
                "'\(host)' is not a host name. Write it without a scheme, a port and a path, such as files.example.")
        }
        for origin in allowOrigin where !Self.isOrigin(origin) {
            throw ValidationError(
                "'\(origin)' is not an origin. Write it without a path, such as "
                    + "https://app.example.")
        }
        for (name, token) in [("token", token), ("read-token", readToken)] {
            if let token, !Self.isToken(token) {
                throw ValidationError("--\(name) must be one or more visible ASCII characters.")
            }
        }
    }

    /// Throws an error if other machines can connect, and neither a token nor `--open` is given.
    func validate(host: String) throws {
        guard !open, token == nil, tokenFile == nil, !LoopbackAddress.contains(host) else { return }
        throw ValidationError(
            "Other machines reach \(host). Use --token or --token-file, or --open to allow everyone.")
    }

    func apply(to receiver: inout Receiver) throws {
        receiver.tokens.posting = try Self.tokens(token, tokenFile)
        let reading = try Self.tokens(readToken, readTokenFile)
        receiver.tokens.reading = reading.isEmpty ? nil : reading
        receiver.allowedHosts = Set(allowHost)
        receiver.allowedOrigins = Set(allowOrigin)
        if let certificate, let privateKey {
            receiver.certificate = ServerCertificate(chain: FilePath(certificate), privateKey: FilePath(privateKey))
        }
    }

    private static func tokens(_ token: String?, _ file: String?) throws -> Set<String> {
        var tokens = Set(token.map { [$0] } ?? [])
        guard let file else { return tokens }
        tokens.formUnion(try TextFile(file).lines())
        // An empty file would give access to everyone, and invalid tokens to no one.
        guard !tokens.isEmpty, tokens.allSatisfy(isToken) else {
            throw CommandFailure.input(file, "has no tokens: write one per line, in visible ASCII characters")
        }
        return tokens
    }

    /// Whether a text is an origin in the notation of browsers (RFC 6454 §6.2).
    private static func isOrigin(_ text: String) -> Bool {
        guard let scheme = text.range(of: "://"), scheme.lowerBound > text.startIndex else { return false }
        let host = text[scheme.upperBound...]
        return isToken(text) && !host.isEmpty && !host.contains { "/?#@*".contains($0) }
    }

    /// Whether a text is only a hostname or an IP address, to compare with the host of a request.
    private static func isHost(_ text: String) -> Bool {
        // A single colon comes before a port. An IPv6 address has several colons, and here no brackets as in `Host`.
        isToken(text) && text.count { $0 == ":" } != 1 && !text.contains { "/?#@*[]".contains($0) }
    }

    private static func isToken(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }
}

/// The options for the address, the port and the path at which a receiver listens.
struct ListeningOptions: ParsableArguments {
    @Option(help: "The address to listen on. One that other machines reach needs --token, --token-file or --open.")
    var host = "127.0.0.1"

    @Option(help: "The port to listen on; 0 picks a free one.")
    var port = 8080

    @Option(help: "Where forms are posted, such as /api/v1/images.")
    var path = "/uploads"

    func validate() throws {
        guard port == 0 || Port.valid.contains(port) else { throw ValidationError("\(port) is not a port.") }
        guard path.hasPrefix("/"), !path.contains("//"), !path.contains(where: { "?#{}*: ".contains($0) }) else {
            throw ValidationError("'\(path)' is not a valid path. Begin it with a slash, such as /api/v1/images.")
        }
    }
}

/// The options for proxies in front of `serve`.
struct ProxyOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A proxy, or a range of proxies such as 10.0.0.0/8, whose Forwarded or X-Forwarded-For says which client a "
                + "request is from; repeatable.",
            valueName: "cidr"),
        transform: { text in
            guard let proxy = TrustedProxy(text) else {
                throw ValidationError(
                    "'\(text)' is not an address or a range of addresses. Write 127.0.0.1, 10.0.0.0/8 or 2001:db8::/32."
                )
            }
            return proxy
        })
    var trustProxy: [TrustedProxy] = []

    @Flag(help: "Expect a PROXY header (version 2) at the beginning of each connection, which names its client.")
    var proxyProtocol = false

    /// Throws an error if other machines can connect and no proxy is trusted, because only proxies may send a PROXY
    /// header.
    func validate(host: String) throws {
        guard proxyProtocol, trustProxy.isEmpty, !LoopbackAddress.contains(host) else { return }
        throw ValidationError(
            "Other machines reach \(host), and could name any client in a PROXY header. Use --trust-proxy with the "
                + "addresses of the proxies.")
    }

    func apply(to receiver: inout Receiver) {
        receiver.connections.trustedProxies = trustProxy
        receiver.connections.usesProxyProtocol = proxyProtocol
    }
}
