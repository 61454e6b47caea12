import ArgumentParser
import PostcardReceiver
import PostcardServer

/// What `serve` needs to know of the proxies in front of it.
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

    /// If other machines can connect, only proxies may send a PROXY header.
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
