import Foundation
import Logging
import NIOHTTP1
import PostcardTestSupport
import Testing

@testable import PostcardS3

/// The object stores that tests use, each with an address such as `http://AKIATEST:secretsecret@127.0.0.1:7480`.
/// `Tests/ObjectStore/start` starts them.
enum ObjectStores {
    static let addresses = (ProcessInfo.processInfo.environment["POSTCARD_OBJECT_STORES"] ?? "")
        .split(separator: " ").map(String.init)

    static let isMissing: Comment =
        "LEFT OUT: POSTCARD_OBJECT_STORES names no object store. Run make check-systems."

    /// Whether an object store is a real one: moto checks no signatures, and its conditions only one at a time.
    static func isReal(_ address: String) -> Bool { address.contains("AKIATEST") }

    /// Makes a bucket with a name of its own.
    static func makeBucket(at address: String) async throws -> S3Bucket {
        let url = try #require(URL(string: address))
        let name = "postcard-\(UUID().uuidString.lowercased())"
        var bucket = try S3Bucket("s3://\(name)/some/path")
        bucket.endpoint = "http://\(url.host() ?? ""):\(url.port ?? 80)"
        bucket.region = "us-east-1"
        bucket.credentials = .fixed(
            S3Credentials(accessKeyID: url.user() ?? "", secretAccessKey: url.password() ?? ""))
        bucket.retryTimeout = .seconds(30)
        let connection = try S3Connection(bucket, logger: .init(label: "test"))
        _ = try await connection.response(to: S3Request(method: .PUT))
        return bucket
    }
}

extension S3Bucket {
    /// The same bucket, for a store before each of whose requests something happens.
    ///
    /// - Parameter before: The request fails with the error that this throws.
    func hooked(before: @escaping @Sendable (S3Request) async throws -> Void) throws -> S3Bucket {
        let direct = try S3Connection(self, logger: .init(label: "test"))
        var bucket = self
        bucket.surroundings = Surroundings(exchange: { request, _, _ in
            try await before(request)
            return try await direct.response(to: request)
        })
        return bucket
    }
}
