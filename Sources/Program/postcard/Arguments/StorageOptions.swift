import ArgumentParser
import Foundation
import Logging
import PostcardForm
import PostcardReceiver
import PostcardS3

/// The options for the place at which `serve` stores forms.
struct StorageOptions: ParsableArguments {
    @Option(help: "A directory of this machine (./received).")
    var directory: String?

    @Option(
        help: ArgumentHelp(
            "A bucket instead, which any number of receivers can share, such as s3://uploads/forms.",
            discussion: """
                Amazon S3, Ceph or another store that creates objects with If-None-Match. The credentials are those of \
                the AWS command line: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE and the keys in ~/.aws, \
                or those of the container or machine. Profiles with SSO, roles or a credential_process are refused.
                """,
            valueName: "s3://bucket/path"))
    var store: String?

    @Option(
        help: ArgumentHelp(
            "The address of the object store, such as http://127.0.0.1:7480. Defaults to AWS_ENDPOINT_URL_S3, "
                + "AWS_ENDPOINT_URL, or Amazon S3.",
            valueName: "url"))
    var s3Endpoint: String?

    @Option(
        help: ArgumentHelp(
            "The region of the bucket. Defaults to AWS_REGION, the one of the profile, or us-east-1.",
            valueName: "region"))
    var s3Region: String?

    @Option(
        help: ArgumentHelp(
            "How long uploads are kept, such as 30d or 12h. Defaults to no limit.",
            discussion: """
                Older ones are removed once a minute, or once an hour with --store. In a directory, an upload ages while a \
                receiver with this option runs, whatever the machine's clock says. A pause between two runs counts for at \
                most a tenth of the limit.
                """, valueName: "time"))
    var keepFor: TimeSpan?

    @Option(
        help: ArgumentHelp(
            "How many bytes of uploads are kept, such as 10GB. Defaults to no limit.",
            discussion: """
                Once there are more, the oldest are removed, but never the newest. So a client that may post can push \
                out the uploads of others, also those that --webhook has not announced yet. In a directory each file, \
                record and folder counts in blocks of 4 KiB. While uploads exceed the limit by a tenth, forms get 503 \
                store-over-limit, except those of addresses that have sent little. With --store the size is compared \
                every half minute to an hour. --log-level notice logs what was removed.
                """, valueName: "size"))
    var keepAtMost: ByteCount?

    func validate() throws {
        if store != nil, directory != nil {
            throw ValidationError("--directory and --store exclude each other: forms are kept in one place.")
        }
        guard store == nil else { return }
        for (name, value) in [("s3-endpoint", s3Endpoint), ("s3-region", s3Region)] where value != nil {
            throw ValidationError("--\(name) has no meaning without --store.")
        }
    }

    /// Makes the receiver. Opens and checks its bucket, if it has one. Throws `S3Error` if the bucket cannot be used.
    func receiver(_ logger: Logger) async throws -> Receiver {
        var receiver = try await emptyReceiver(logger)
        if keepFor != nil || keepAtMost != nil {
            var retention = RetentionPolicy()
            retention.maximumAge = keepFor?.duration
            retention.maximumBytes = keepAtMost?.bytes
            receiver.retention = retention
        }
        return receiver
    }

    private func emptyReceiver(_ logger: Logger) async throws -> Receiver {
        guard let store else { return Receiver(directory: directory ?? "./received") }
        var bucket = try S3Bucket(store)
        bucket.endpoint = s3Endpoint
        bucket.region = s3Region
        return Receiver(store: try await S3UploadStore.open(bucket, logger: logger))
    }
}

/// A duration with its unit, such as `30d`.
struct TimeSpan: ExpressibleByArgument, Equatable {
    let duration: Duration

    private static let units: [Character: Double] = ["s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604_800]

    /// The maximum time in seconds: a hundred years of 365 days.
    private static let longest: Double = 100 * 365 * 86400

    /// Parses a number and a unit: seconds, minutes, hours, days or weeks.
    init?(argument: String) {
        guard let unit = argument.last.flatMap({ Self.units[$0] }) else { return nil }
        let digits = argument.dropLast()
        guard digits.first?.isASCII == true, digits.first?.isNumber == true,
            digits.allSatisfy({ $0.isASCII && $0.isNumber || $0 == "." }), let number = Double(digits)
        else { return nil }
        let seconds = number * unit
        guard (1...Self.longest).contains(seconds) else { return nil }
        duration = .seconds(seconds)
    }
}
