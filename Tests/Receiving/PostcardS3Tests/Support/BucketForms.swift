import Foundation
import Logging
import NIOCore
import NIOHTTP1
import PostcardClient
import PostcardForm

@testable import PostcardS3

/// Forms that are signed for a bucket of a test.
struct BucketForms {
    let bucket: S3Bucket
    let connection: S3Connection

    init(_ bucket: S3Bucket) throws {
        self.bucket = bucket
        connection = try S3Connection(bucket, logger: .init(label: "test"))
    }

    func policy(
        lifetime: TimeInterval = 600, fields: [(name: String, value: String)] = [("key", "photos/1")],
        beginnings: [(name: String, beginning: String)] = [], bytes: ClosedRange<Int64>? = nil
    ) -> PostPolicy {
        PostPolicy(
            expires: Date().addingTimeInterval(lifetime), fields: fields, beginnings: beginnings, contentLengths: bytes)
    }

    func sign(_ policy: PostPolicy, at date: Date = Date()) async throws -> PresignedForm {
        try await connection.signedForm(policy, at: date)
    }

    func signPut(
        _ key: String = "photos/1", headers: [(String, String)] = [], lifetime: Int = 600, at date: Date = Date()
    ) async throws -> PresignedForm {
        try await connection.signedPut(key, headers: headers, lifetime: lifetime, at: date)
    }

    /// The content of an object, and its type.
    func object(_ key: String) async throws -> (bytes: [UInt8], type: String?) {
        let response = try await connection.response(to: S3Request(method: .GET, key: key))
        return (Array(response.body.readableBytesView), response.headers.first(name: "content-type"))
    }
}
