import HTTPTypes
import PostcardFoundation

/// A proxy or web server in front of the actual server that may respond with its own page.
struct KnownProxy: Sendable, Hashable {
    /// The name of the proxy, for messages.
    let name: String
    /// The beginning of the `Server` field in the proxy's responses (RFC 9110 §10.2.4), in lower case.
    let product: String
    /// Texts in lower case that identify the proxy's own pages. Each of these pages has at least one of the texts.
    let marks: [String]
    /// The name of the proxy's setting that limits the size of a request; `nil` if there is no such setting.
    let sizeLimit: String?

    static let nginx = KnownProxy(
        name: "nginx", product: "nginx", marks: ["<center>nginx"], sizeLimit: "client_max_body_size")

    static let all = [
        nginx,
        KnownProxy(
            name: "OpenResty", product: "openresty", marks: ["<center>openresty"], sizeLimit: "client_max_body_size"),
        KnownProxy(
            name: "Apache", product: "apache", marks: ["<address>apache", "-//ietf//dtd html 2.0//en"],
            sizeLimit: "LimitRequestBody"),
        // HAProxy sends no `Server` field. Its texts are from its default pages.
        KnownProxy(
            name: "HAProxy", product: "haproxy",
            marks: [
                "the request entity exceeds the maximum allowed.", "no server is available to handle this request.",
                "the server returned an invalid or incomplete response.", "the server didn't respond in time.",
                "your browser sent an invalid request.", "your browser didn't send a complete request in time.",
                "request forbidden by administrative rules.",
            ],
            sizeLimit: "a rule on req.body_size or the Content-Length"),
        KnownProxy(
            name: "Varnish", product: "varnish", marks: ["varnish cache server", "guru meditation"],
            sizeLimit: "a rule of its VCL on the Content-Length"),
        KnownProxy(name: "Caddy", product: "caddy", marks: [], sizeLimit: "request_body { max_size }"),
        KnownProxy(
            name: "lighttpd", product: "lighttpd", marks: [#"<?xml version="1.0" encoding="iso-8859-1"?>"#],
            sizeLimit: "server.max-request-size"),
        KnownProxy(
            name: "Squid", product: "squid", marks: ["(squid/", "(squid)"], sizeLimit: "request_body_max_size"),
        KnownProxy(
            name: "IIS", product: "microsoft-iis", marks: ["<h2>http error 404.13"],
            sizeLimit: "maxAllowedContentLength"),
        KnownProxy(name: "Envoy", product: "envoy", marks: [], sizeLimit: "max_request_bytes"),
        KnownProxy(name: "Cloudflare", product: "cloudflare", marks: ["cloudflare ray id"], sizeLimit: nil),
        KnownProxy(name: "an AWS load balancer", product: "awselb", marks: [], sizeLimit: nil),
    ]
}

extension KnownProxy {
    /// Finds the proxy that made the page in a response. Proxies put their own `Server` field on the server's responses
    /// too. So the field counts only if the page is empty or its title is the status.
    ///
    /// - Returns: `nil` if the response is not known to be a proxy's.
    init?(respondingWith response: UploadResponse) {
        let type = response.headerFields[.contentType]?.lowercased() ?? ""
        guard type.isEmpty || type.contains("html") || response.body.isEmpty else { return nil }
        let page = String(streamSafe: response.body.prefix(Self.maximumPageBytes)).lowercased()
        let server = response.headerFields[.server]?.lowercased() ?? ""
        let isWordless = response.body.isEmpty || response.reasonIsStatus
        let found = Self.all.first { proxy in
            proxy.marks.contains { page.contains($0) } || (isWordless && server.hasPrefix(proxy.product))
        }
        guard let found else { return nil }
        self = found
    }

    /// The maximum size of a page to examine, which is larger than every default page.
    private static let maximumPageBytes = 16 << 10

    /// Explains a refusal by the proxy with a status.
    func explanation(of status: HTTPResponse.Status) -> String {
        let origin = "The response seems to be one of \(name), which may be a proxy in front of the server."
        guard status == .contentTooLarge, let sizeLimit else { return origin }
        return "\(origin) \(name) sets how large a request may be with \(sizeLimit)."
    }
}
