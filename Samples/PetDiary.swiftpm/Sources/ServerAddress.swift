import Foundation

/// Where entries are sent. An entry keeps the address that it was enqueued with.
enum ServerAddress {
    static let key = "server"
    /// How an address looks. It is shown while the field is empty, and never used.
    static let example = "http://your-mac.local:8080/uploads"

    struct Invalid: LocalizedError {
        let address: String
        var errorDescription: String? { "“\(address)” is not an address. Change it in the settings." }
    }

    static func url(_ address: String) throws -> URL {
        guard let url = URL(string: address), url.host() != nil else { throw Invalid(address: address) }
        return url
    }
}
