#if Server
/// What of a request is not shown to those who look at it: values that let somebody in.
enum Secrets {
    /// What stands in a secret's place.
    static let mask = "***"

    private static let names: Set<String> = ["authorization", "proxy-authorization", "cookie", "set-cookie"]
    private static let pieces = ["token", "secret", "password", "passwd", "api-key", "apikey", "api_key", "signature"]

    /// Whether the value of a header field or of a query's parameter lets somebody in.
    static func isSecret(_ name: some StringProtocol) -> Bool {
        let name = name.lowercased()
        return names.contains(name) || pieces.contains { name.contains($0) }
    }

    /// A path, with the values of secret parameters in its query masked.
    static func masked(path: String) -> String {
        let halves = path.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard halves.count == 2 else { return path }
        let parameters = halves[1].split(separator: "&", omittingEmptySubsequences: false).map { parameter in
            let pair = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return pair.count == 2 && isSecret(pair[0]) ? "\(pair[0])=\(mask)" : String(parameter)
        }
        return halves[0] + "?" + parameters.joined(separator: "&")
    }
}
#endif
