import HTTPTypes
import PostcardFoundation
package import PostcardWire
import Synchronization

/// The settings for resuming interrupted uploads.
///
/// ```swift
/// var client = UploadClient()
/// client.resumption = ResumptionPolicy()
/// ```
///
/// A server that supports "Resumable Uploads for HTTP" (draft-ietf-httpbis-resumable-upload) keeps the bytes of a form
/// that it received before the connection broke. It reports the number of these bytes, and accepts the following bytes.
/// The client finds out with an OPTIONS request whether a server supports this, at most once an hour for each address.
/// If the response does not offer resumption, the form is sent in one request that invites the server to resume it.
/// Other servers ignore the invitation. A form whose length is unknown, or with a stream that can be read only once, is
/// an ordinary upload.
///
/// A resumed upload is another attempt with the same `Idempotency-Key`, and its progress continues. If a file of the
/// form has changed in the meantime, the upload fails before another byte is sent. Interceptors adapt only the caller's
/// request; the header fields that they add are sent with every request of the upload.
public struct ResumptionPolicy: Sendable {
    /// When and how often an interrupted upload resumes. Once the server is known to support resumption, this policy
    /// replaces the client's retry policy. It counts only attempts in a row that made no progress.
    public var retryPolicy: RetryPolicy

    /// The smallest body in bytes that is sent as a resumable upload, which needs two more requests. Defaults to 1 MiB.
    /// Smaller bodies are ordinary uploads, unless an earlier upload showed that the address accepts only smaller
    /// requests.
    public var minimumBytes: Int64

    /// Whether the client asks the server to delete the bytes of an upload whose task is cancelled. The request takes
    /// at most five seconds. Defaults to `false`: the server keeps the bytes until they expire.
    public var deletesCancelledUploads: Bool

    /// The maximum number of responses in a row that reject the bytes sent, before the upload fails. Defaults to 5.
    ///
    /// A server rejects the bytes if it has lost earlier bytes (404, 410), has another offset than it reported (409),
    /// received other bytes than were sent (400 with the code `digest-mismatch`), or has lowered its limit (413). The
    /// upload then asks for the offset and resumes at once. Only an accepted or interrupted request resets the count.
    public var maximumRejections = 5

    /// The sizes of appends, in bytes, after appends have failed for an unknown reason. The reason may be a proxy with
    /// its own limit, or a proxy that forwards only complete requests. The first append has the upper bound as its
    /// size. Each further append is half as large as the last failed one, down to the lower bound. Defaults to
    /// 8,000,000 down to 125,000.
    package var cautiousAppendBytes: ClosedRange<Int64> = 125_000...8_000_000

    /// The supported versions of the draft, most preferred first. If a server refuses a version, the next one is tried.
    /// A server without versions, as in the future standard, answers requests in any version.
    package var versions: [ResumptionVersion] = [.interop9, .interop8, .interop6]

    /// The versions in which a form invites a server without OPTIONS to name an upload resource, most preferred first.
    /// The last invitation names no version, because a 104 without a version counts only after a request without a
    /// version.
    var invitations: [ResumptionVersion] { versions.contains(.newest) ? versions : versions + [.newest] }

    /// The version of the next invitation, after the server has ignored an invitation; `nil` after the last version.
    func invitation(after version: ResumptionVersion) -> ResumptionVersion? {
        invitations.drop { $0 != version }.dropFirst().first
    }

    /// Whether a response does not show what the server supports, because the server or a proxy is busy, or because the
    /// client must authenticate.
    func saysNothing(_ response: UploadResponse) -> Bool {
        retryPolicy.statuses.union([401, 403]).contains(response.status.code)
    }

    /// The offers of servers, shared by all copies of the policy.
    let offers = ResumptionOffers()

    /// Makes a policy.
    ///
    /// - Parameters:
    ///   - retryPolicy: When and how often an interrupted upload resumes. Defaults to ten attempts in a row without
    ///     progress.
    ///   - minimumBytes: The smallest body in bytes that is resumed. Defaults to 1 MiB.
    ///   - deletesCancelledUploads: Whether the server is asked to delete cancelled uploads. Defaults to `false`.
    public init(
        retryPolicy: RetryPolicy = RetryPolicy(maximumAttempts: 10), minimumBytes: Int64 = 1 << 20,
        deletesCancelledUploads: Bool = false
    ) {
        self.retryPolicy = retryPolicy
        self.minimumBytes = minimumBytes
        self.deletesCancelledUploads = deletesCancelledUploads
    }
}

/// A server's offer to resume uploads.
struct ResumptionOffer: Sendable, Hashable {
    private(set) var version: ResumptionVersion
    private(set) var limits: UploadLimits
    /// Whether OPTIONS has offered resumable uploads. If not, the client never creates an upload with an empty request:
    /// a server that cannot resume uploads would take the empty body for a form.
    let isListed: Bool

    init(version: ResumptionVersion, limits: UploadLimits) {
        self.version = version
        self.limits = limits
        isListed = true
    }

    private init(unlisted version: ResumptionVersion) {
        self.version = version
        limits = UploadLimits()
        isListed = false
    }

    /// The offer of a server without OPTIONS that has named an upload resource.
    static func unlisted(_ version: ResumptionVersion) -> ResumptionOffer { ResumptionOffer(unlisted: version) }

    /// Whether an upload of this many bytes can be resumed.
    ///
    /// A form is sent in a single request if the server accepts only a few bytes at a time, because resuming would need
    /// too many requests. A form no larger than the smallest append is also sent in a single request.
    func accepts(_ length: Int64) -> Bool {
        let smallestAppend = limits.minimumAppendBytes ?? 0
        let largestAppend = limits.maximumAppendBytes ?? .max
        return length >= limits.minimumBytes ?? 0 && !isExceeded(by: length) && length > smallestAppend
            && largestAppend >= max(smallestAppend, Self.worthwhileBytes(of: length))
    }

    /// Whether an upload of this many bytes is larger than the server accepts.
    func isExceeded(by length: Int64) -> Bool { length > limits.maximumBytes ?? .max }

    /// The smallest number of bytes worth a request: a hundredth of the form, but at most 64 KiB.
    static func worthwhileBytes(of length: Int64) -> Int64 {
        min(max(length / 100, 1), 64 << 10)
    }

    /// Adopts the limits in a later response. Limits that the response does not name stay unchanged.
    mutating func adopt(_ others: UploadLimits) {
        limits.adopt(others)
    }

    /// The same offer in another version.
    func inVersion(_ version: ResumptionVersion) -> ResumptionOffer {
        var offer = self
        offer.version = version
        return offer
    }
}

/// The support for resumable uploads that a server has reported.
enum ResumptionSupport: Sendable, Hashable {
    case unknown
    /// The response to OPTIONS does not offer resumable uploads. The server may still name an upload resource in a 104,
    /// if the form's request invites the server to resume the upload ("Optimistic Upload Creation").
    ///
    /// - Parameter inviting: The version in which forms invite the server; `nil` if no version has worked.
    case unlisted(inviting: ResumptionVersion?)
    case offered(ResumptionOffer)

    /// Whether the response to OPTIONS does not offer resumable uploads.
    var isUnlisted: Bool { if case .unlisted = self { true } else { false } }
}

/// The facts that other uploads have learned about a server and the proxies in front of it.
struct KnownServer: Sendable, Hashable {
    var support = ResumptionSupport.unknown
    /// The version in which the origin last offered or accepted a resumable upload; `nil` if there is none.
    var version: ResumptionVersion?
    /// The append size in bytes that succeeded after larger appends had failed; `nil` if none had failed.
    var appendBytes: Int64?
}

/// The known offers and append sizes of servers. With these, the client need not send OPTIONS before every form, or
/// search for a proxy's size limit again.
final class ResumptionOffers: Sendable {
    /// How long an entry is valid. It limits the time until a change of the server is noticed.
    private static let lifetime = Duration.seconds(3600)

    /// The maximum number of entries, which limits the memory. A server without an entry is asked again.
    private static let maximumCount = 1000

    private let state = Mutex(State())

    private struct State {
        /// The support for resumable uploads, by address.
        var support = Entries<ResumptionSupport>()
        /// The draft versions, by origin, because one server program handles all addresses of an origin.
        var versions = Entries<ResumptionVersion>()
        /// The append sizes, by origin, because a proxy is the same for all addresses of an origin.
        var appendBytes = Entries<Int64>()
    }

    private struct Entries<Value: Sendable & Equatable>: Sendable {
        private var values: [String: (value: Value, time: ContinuousClock.Instant)] = [:]

        func value(_ key: String, at now: ContinuousClock.Instant) -> Value? {
            guard let entry = values[key], now - entry.time < ResumptionOffers.lifetime else { return nil }
            return entry.value
        }

        mutating func note(_ value: Value, of key: String, at now: ContinuousClock.Instant) {
            // Using an entry does not renew its lifetime.
            if self.value(key, at: now) == value { return }
            if values.count >= ResumptionOffers.maximumCount { values.removeAll() }
            values[key] = (value, now)
        }
    }

    /// The facts that earlier uploads have learned about the server at an address.
    func known(for url: URL, at now: ContinuousClock.Instant = .now) -> KnownServer {
        state.withLock { state in
            KnownServer(
                support: state.support.value(Self.key(url), at: now) ?? .unknown,
                version: state.versions.value(url.origin, at: now),
                appendBytes: state.appendBytes.value(url.origin, at: now))
        }
    }

    func note(_ support: ResumptionSupport, for url: URL, at now: ContinuousClock.Instant = .now) {
        state.withLock { state in
            state.support.note(support, of: Self.key(url), at: now)
            if case .offered(let offer) = support { state.versions.note(offer.version, of: url.origin, at: now) }
        }
    }

    func note(appendBytes: Int64, for url: URL) {
        state.withLock { $0.appendBytes.note(appendBytes, of: url.origin, at: .now) }
    }

    private static func key(_ url: URL) -> String {
        url.origin + url.path(percentEncoded: true)
    }
}
