package import PostcardResumption
import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// How an interrupted upload resumes.
///
/// ```swift
/// var client = UploadClient()
/// client.resumption = ResumptionPolicy()
/// ```
///
/// A server that supports "Resumable Uploads for HTTP" (draft-ietf-httpbis-resumable-upload) keeps what it has of a
/// form when the connection breaks, says how much that is, and accepts the rest. An OPTIONS request finds out whether
/// it does, at most once an hour for each address. A server that does not gets an ordinary upload, and so does a form
/// with a stream that can be read only once or has no known length.
///
/// A resumed upload is another attempt, with the same `Idempotency-Key`, and its progress continues. If a file of the
/// form has changed in the meantime, the upload fails before another byte is sent. Interceptors adapt the request that
/// the caller made; the header fields that they add are sent with every request of the upload.
public struct ResumptionPolicy: Sendable {
    /// When and how often an interrupted upload resumes. It replaces the client's own policy once the server is known
    /// to support resumption, and counts only attempts in a row that made no progress.
    public var retry: RetryPolicy

    /// The smallest body, in bytes, that is worth the two further requests. Defaults to 1 MiB. Smaller ones are
    /// ordinary uploads.
    public var minimumBytes: Int64

    /// Whether the server is asked to delete what it has when the upload's task is cancelled, which takes at most five
    /// seconds. Defaults to `false`: nothing is sent, and the server keeps it until it expires.
    public var deletesCancelledUploads: Bool

    /// How many responses in a row may reject what is sent (409, 404, 410) before the upload fails. Defaults to 5.
    ///
    /// Such a response means that the server has lost what it had, or has another offset than it said. The upload then
    /// asks for the offset and resumes at once. An offset that the server reports meanwhile is not progress; only an
    /// accepted request is, or one that was interrupted.
    public var maximumRejections = 5

    /// The supported revisions of the draft, most preferred first. The header fields of the last revision are those of
    /// the future standard.
    package var versions: [ResumptionVersion] = [.interop8, .interop6]

    /// What servers have offered; copies of the policy share it.
    let offers = ResumptionOffers()

    /// Makes a policy.
    ///
    /// - Parameters:
    ///   - retry: When and how often an interrupted upload resumes. Defaults to up to ten attempts in a row without
    ///     progress.
    ///   - minimumBytes: The smallest body that is resumed, in bytes. Defaults to 1 MiB.
    ///   - deletesCancelledUploads: Whether the server is asked to delete a cancelled upload. Defaults to `false`.
    public init(
        retry: RetryPolicy = RetryPolicy(maximumAttempts: 10), minimumBytes: Int64 = 1 << 20,
        deletesCancelledUploads: Bool = false
    ) {
        self.retry = retry
        self.minimumBytes = minimumBytes
        self.deletesCancelledUploads = deletesCancelledUploads
    }
}

/// How a server supports resumable uploads.
struct ResumptionOffer: Sendable, Hashable {
    let version: ResumptionVersion
    let limits: UploadLimits

    /// Whether an upload of this many bytes can be resumed.
    ///
    /// A server that takes a few bytes at a time would cost more requests than any interruption: its uploads are sent
    /// in a single request.
    func accepts(_ length: Int64) -> Bool {
        length >= limits.minimumBytes ?? 0 && length <= limits.maximumBytes ?? .max
            && limits.maximumAppendBytes ?? .max >= Self.worthwhileBytes(of: length)
    }

    /// How many bytes are worth a request: a hundredth of the form, but no more than 64 KiB.
    static func worthwhileBytes(of length: Int64) -> Int64 {
        min(max(length / 100, 1), 64 << 10)
    }
}

/// What is known of a server that may resume uploads.
enum ResumptionSupport: Sendable, Hashable {
    case unknown
    /// The server does not resume uploads.
    case unsupported
    case offered(ResumptionOffer)
}

/// What servers have offered, so that they are not asked before every form.
final class ResumptionOffers: Sendable {
    /// How soon a change of the server is noticed.
    private static let lifetime = Duration.seconds(3600)

    /// Limits the memory; a server that is forgotten is asked again.
    private static let maximumCount = 1000

    private let entries = Mutex<[String: (support: ResumptionSupport, time: ContinuousClock.Instant)]>([:])

    /// What is known about an address.
    func known(for url: URL) -> ResumptionSupport {
        entries.withLock { entries in
            guard let entry = entries[Self.key(url)], .now - entry.time < Self.lifetime else { return .unknown }
            return entry.support
        }
    }

    func note(_ support: ResumptionSupport, for url: URL) {
        entries.withLock { entries in
            if entries.count >= Self.maximumCount { entries.removeAll() }
            entries[Self.key(url)] = (support, .now)
        }
    }

    private static func key(_ url: URL) -> String {
        url.origin + url.path(percentEncoded: true)
    }
}
