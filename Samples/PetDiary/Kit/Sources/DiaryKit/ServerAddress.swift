public import Foundation

/// Where entries are sent. An entry keeps the address that it was enqueued with until it is sent elsewhere.
public enum ServerAddress {
    public static let key = "server"
    /// How an address looks. It is shown while the field is empty, and refused as an address.
    public static let example = "http://your-mac.local:8080/uploads"

    /// Why a text is not the address of a server.
    public enum Problem: LocalizedError, Equatable {
        case missing
        case invalid(String)
        case placeholder(String)

        public var errorDescription: String? {
            switch self {
            case .missing: DiaryText.noAddress.localized()
            case .invalid(let text): DiaryText.invalidAddress.localized(text)
            case .placeholder(let text): DiaryText.placeholder.localized(text)
            }
        }
    }

    /// Reads an address that someone has typed.
    public static func url(_ text: String) throws(Problem) -> URL {
        let text = String(text.drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
        if text.isEmpty { throw .missing }
        guard let url = URL(string: text), let scheme = url.scheme?.lowercased(), ["http", "https"].contains(scheme),
            let host = url.host()?.lowercased(), !host.isEmpty
        else { throw .invalid(text) }
        if isPlaceholder(host) { throw .placeholder(text) }
        return url
    }

    /// Whether a name is one that no server has: that of the example, and those that RFC 2606 reserves.
    private static func isPlaceholder(_ host: String) -> Bool {
        let labels = host.split(separator: ".")
        return host == URL(string: example)?.host() || ["example", "invalid", "test"].contains(labels.last)
            || labels.count > 1 && labels[labels.count - 2] == "example" && ["com", "net", "org"].contains(labels.last)
    }
}
