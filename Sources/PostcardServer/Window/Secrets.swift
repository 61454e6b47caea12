#if Server
import Foundation

/// What of a request is not shown to those who look at it: values that let somebody in.
enum Secrets {
    /// What stands in a secret's place.
    static let mask = "***"

    private static let names: Set<String> = [
        "authorization", "proxy-authorization", "authentication", "x-auth", "cookie", "set-cookie",
        "auth", "key", "sig", "code", "pwd",
    ]
    private static let pieces = [
        "token", "secret", "password", "passwd", "api-key", "apikey", "api_key", "signature",
        "session", "jwt", "csrf", "access-key", "credential",
    ].map { Array($0.utf8) }

    /// Whether the value of a header field or of a query's parameter lets somebody in.
    static func isSecret(_ name: some StringProtocol) -> Bool {
        let name = name.lowercased()
        // By their bytes: every field of every request is asked about.
        let bytes = Array(name.utf8)
        return names.contains(name) || pieces.contains { piece in holds(bytes, piece) }
    }

    private static func holds(_ bytes: [UInt8], _ piece: [UInt8]) -> Bool {
        guard bytes.count >= piece.count else { return false }
        return (0...(bytes.count - piece.count)).contains { start in
            bytes[start] == piece[0] && bytes[start..<(start + piece.count)].elementsEqual(piece)
        }
    }

    /// A header field's value, masked where it is secret, or where the address that it holds is.
    static func masked(_ value: String, of name: some StringProtocol) -> String {
        isSecret(name) ? mask : masked(path: value)
    }

    /// A path, or a text that holds one, with the values of secret parameters in its query masked.
    static func masked(path: String) -> String {
        let path = maskingResumption(path)
        let halves = path.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard halves.count == 2 else { return path }
        let parameters = halves[1].split(separator: "&", omittingEmptySubsequences: false).map { parameter in
            let pair = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(pair[0]).removingPercentEncoding ?? String(pair[0])
            return pair.count == 2 && isSecret(name) ? "\(pair[0])=\(mask)" : String(parameter)
        }
        return halves[0] + "?" + parameters.joined(separator: "&")
    }

    /// Whoever knows the address of an upload can go on with it, or end it.
    private static func maskingResumption(_ path: String) -> String {
        path.split(separator: "/", omittingEmptySubsequences: false)
            .map { ResumptionID($0.prefix { $0 != "?" }) == nil ? $0 : mask[...] }.joined(separator: "/")
    }
}
#endif
