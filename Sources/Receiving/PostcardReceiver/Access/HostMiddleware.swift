import HTTPTypes
import Hummingbird
import PostcardReception
import PostcardServer
import PostcardWire

/// Refuses requests that name several hosts, or a host that is not allowed.
///
/// A page on the web can let its own name resolve to 127.0.0.1. The browser then treats the page and a receiver on this
/// machine as one origin, so the page could read the uploads. The name in `Host` reveals this attack.
struct HostMiddleware<Context: RequestContext>: RouterMiddleware {
    /// The allowed host names besides this machine's own, in lower case without a trailing dot; `nil` allows all names.
    let allowed: Set<String>?
    let meter: UploadMeter

    func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        do throws(UploadProblem) {
            try check(request)
        } catch {
            meter.refused(error)
            throw error
        }
        return try await next(request, context)
    }

    private func check(_ request: Request) throws(UploadProblem) {
        let hosts = request.hostFields
        guard hosts.count <= 1 else { throw .severalHosts }
        if let authority = request.head.authority, let host = hosts.first {
            guard Authority.isSame(authority, host, in: request.head.scheme ?? "https") else { throw .differentHosts }
        }
        guard let name = request.host else {
            // An HTTP/1.0 client may omit `Host`. Browsers always send it.
            guard UploadConnection.current?.isStream != true else { throw .missingHost }
            return
        }
        guard let allowed else { return }
        let host = Authority.host(of: name)
        guard LoopbackAddress.contains(host) || allowed.contains(host) else { throw .hostNotAllowed }
    }
}

/// The host and port of a request, from `:authority` or `Host` (RFC 9110 §7.2).
enum Authority {
    /// Returns the host name or address of an authority in lower case, without its port and brackets.
    static func host(of authority: String) -> String {
        if authority.hasPrefix("[") { return authority.dropFirst().prefix { $0 != "]" }.lowercased() }
        return normalName(String(authority.prefix { $0 != ":" }))
    }

    /// Returns a host name in lower case, without a trailing dot.
    static func normalName(_ name: String) -> String {
        let name = name.lowercased()
        return name.hasSuffix(".") ? String(name.dropLast()) : name
    }

    /// Whether two authorities name the same server. The scheme's default port may be omitted (RFC 9110 §4.2.3).
    static func isSame(_ one: some StringProtocol, _ other: some StringProtocol, in scheme: String) -> Bool {
        normal(one, in: scheme) == normal(other, in: scheme)
    }

    private static func normal(_ authority: some StringProtocol, in scheme: String) -> String {
        let port = ":\(Port.ofScheme(scheme))"
        let name = authority.lowercased()
        return name.hasSuffix(port) ? String(name.dropLast(port.count)) : name
    }
}

extension Request {
    /// The authority of the request. Over HTTP/2, `:authority` takes precedence (RFC 9113 §8.3.1).
    var host: String? { head.authority ?? hostFields.first }

    /// The request's `Host` fields. Over HTTP/1.1, Hummingbird has moved the field to the authority.
    fileprivate var hostFields: [String] {
        // HTTPTypes has no constant for `Host`, because it stores the host as the authority of the request.
        HTTPField.Name("Host").map { headers[values: $0] } ?? []
    }
}

extension UploadProblem {
    fileprivate static let hostNotAllowed = UploadProblem(
        status: .misdirectedRequest, code: "host-not-allowed",
        message: "The receiver listens to this machine alone, and the request's Host is not a name of it.",
        advice: "Use localhost or 127.0.0.1, or start the receiver with --allow-host and the name.")

    fileprivate static let differentHosts = UploadProblem(
        status: 400, code: "malformed-request", message: "The request has one name in :authority and another in host.",
        advice: "Send :authority alone.")
}

/// The host names and addresses that reach only the machine itself.
package enum LoopbackAddress {
    /// Whether a host is a loopback name or address. `host` is a name or an address. IPv6 addresses have no brackets.
    package static func contains(_ host: some StringProtocol) -> Bool {
        let host = host.lowercased()
        // Names that end in `.localhost` are loopback names too (RFC 6761 §6.3).
        if host == "localhost" || host.hasSuffix(".localhost") || host == "::1" { return true }
        let numbers = host.split(separator: ".", omittingEmptySubsequences: false)
        return numbers.count == 4 && numbers[0] == "127"
            && numbers.allSatisfy { $0.utf8.allSatisfy { (0x30...0x39).contains($0) } && UInt8($0) != nil }
    }
}
