import HTTPTypes
import PostcardFoundation
package import PostcardWire
import Synchronization

/// How an interrupted upload resumes.
///
/// ```swift
/// var client = UploadClient()
/// client.resumption = ResumptionPolicy()
/// ```
///
/// A server that supports "Resumable Uploads for HTTP" (draft-ietf-httpbis-resumable-upload) keeps what it has of a
/// form when the connection breaks, says how much that is, and accepts the rest. An OPTIONS request finds out whether
/// it does, at most once an hour for each address. If the response offers nothing, the form is sent in one request that
/// invites the server to resume it, which others ignore. A form with a stream that can be read only once or has no known
/// length is an ordinary upload.
///
/// A resumed upload is another attempt, with the same `Idempotency-Key`, and its progress continues. If a file of the
/// form has changed in the meantime, the upload fails before another byte is sent. Interceptors adapt the request that
/// the caller made; the header fields that they add are sent with every request of the upload.
public struct ResumptionPolicy: Sendable {
    /// When and how often an interrupted upload resumes. It replaces the client's own policy once the server is known
    /// to support resumption, and counts only attempts in a row that made no progress.
    public var retryPolicy: RetryPolicy

    /// The smallest body, in bytes, that is worth the two further requests. Defaults to 1 MiB. Smaller ones are
    /// ordinary uploads, unless an earlier upload has shown that the address accepts only smaller requests.
    public var minimumBytes: Int64

    /// Whether the server is asked to delete what it has when the upload's task is cancelled, which takes at most five
    /// seconds. Defaults to `false`: nothing is sent, and the server keeps it until it expires.
    public var deletesCancelledUploads: Bool

    /// How many responses in a row may reject what is sent before the upload fails. Defaults to 5.
    ///
    /// Such a response means that the server has lost what it had (404, 410), has another offset than it said (409),
    /// got other bytes than were sent (400 with the code `digest-mismatch`), or has lowered its limit (413). The upload
    /// then asks for the offset and resumes at once. An offset that the server reports meanwhile is not progress: only a
    /// request that the server accepts, or that is interrupted, resets the count.
    public var maximumRejections = 5

    /// How large appends are, in bytes, once some have failed for no reason that the server gave: because of a proxy
    /// with a limit of its own, or one that passes nothing on before it has the whole request. The first is as large as
    /// the upper bound, and each further one half as large as the last that failed, down to the lower bound. Defaults
    /// to 8,000,000 down to 125,000.
    package var cautiousAppendBytes: ClosedRange<Int64> = 125_000...8_000_000

    /// The supported versions of the draft, most preferred first. A server that refuses one is asked in the next one. A
    /// server without versions, as the future standard has it, answers to any of them.
    package var versions: [ResumptionVersion] = [.interop9, .interop8, .interop6]

    /// The versions in which a whole form invites a server without OPTIONS to name an upload resource, most preferred
    /// first. The last one is none: a 104 without a version counts only if the request has none either.
    var invitations: [ResumptionVersion] { versions.contains(.newest) ? versions : versions + [.newest] }

    /// The version to invite a server in that has not answered to another one; `nil` after the last.
    func invitation(after version: ResumptionVersion) -> ResumptionVersion? {
        invitations.drop { $0 != version }.dropFirst().first
    }

    /// Whether a response says nothing about what the server supports: it or a proxy is busy, or the client must
    /// authenticate.
    func saysNothing(_ response: UploadResponse) -> Bool {
        retryPolicy.statuses.union([401, 403]).contains(response.status.code)
    }

    /// What servers have offered; copies of the policy share it.
    let offers = ResumptionOffers()

    /// Makes a policy.
    ///
    /// - Parameters:
    ///   - retryPolicy: When and how often an interrupted upload resumes. Defaults to up to ten attempts in a row without
    ///     progress.
    ///   - minimumBytes: The smallest body that is resumed, in bytes. Defaults to 1 MiB.
    ///   - deletesCancelledUploads: Whether the server is asked to delete a cancelled upload. Defaults to `false`.
    public init(
        retryPolicy: RetryPolicy = RetryPolicy(maximumAttempts: 10), minimumBytes: Int64 = 1 << 20,
        deletesCancelledUploads: Bool = false
    ) {
        self.retryPolicy = retryPolicy
        self.minimumBytes = minimumBytes
        self.deletesCancelledUploads = deletesCancelledUploads
    }
}

/// How a server supports resumable uploads.
struct ResumptionOffer: Sendable, Hashable {
    private(set) var version: ResumptionVersion
    private(set) var limits: UploadLimits
    /// Whether OPTIONS says so. A server without OPTIONS gets no creation without content: if it does not know the draft,
    /// it takes that for a form.
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

    /// What is known of a server without OPTIONS that has named an upload resource.
    static func unlisted(_ version: ResumptionVersion) -> ResumptionOffer { ResumptionOffer(unlisted: version) }

    /// Whether an upload of this many bytes can be resumed.
    ///
    /// A server that takes a few bytes at a time would cost more requests than any interruption: its uploads are sent
    /// in a single request. So are those that are no larger than the smallest append.
    func accepts(_ length: Int64) -> Bool {
        let smallestAppend = limits.minimumAppendBytes ?? 0
        let largestAppend = limits.maximumAppendBytes ?? .max
        return length >= limits.minimumBytes ?? 0 && !isExceeded(by: length) && length > smallestAppend
            && largestAppend >= max(smallestAppend, Self.worthwhileBytes(of: length))
    }

    /// Whether an upload of this many bytes is larger than the server accepts.
    func isExceeded(by length: Int64) -> Bool { length > limits.maximumBytes ?? .max }

    /// How many bytes are worth a request: a hundredth of the form, but no more than 64 KiB.
    static func worthwhileBytes(of length: Int64) -> Int64 {
        min(max(length / 100, 1), 64 << 10)
    }

    /// Adopts the limits in a later response. Those that it does not name stay as they were.
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

/// What a server has said about resumption.
enum ResumptionSupport: Sendable, Hashable {
    case unknown
    /// OPTIONS offers nothing. The server may still name an upload resource in a 104 to a form that invites it to
    /// ("Optimistic Upload Creation").
    ///
    /// - Parameter inviting: The version in which forms do; `nil` if no version has led to anything.
    case unlisted(inviting: ResumptionVersion?)
    case offered(ResumptionOffer)

    /// Whether the server has said that it offers nothing.
    var isUnlisted: Bool { if case .unlisted = self { true } else { false } }
}

/// What is known of a server, and of the proxies before it, from other uploads.
struct KnownServer: Sendable, Hashable {
    var support = ResumptionSupport.unknown
    /// The version in which the origin last offered to resume uploads, or accepted one; `nil` if it has not.
    var version: ResumptionVersion?
    /// The size of the appends that have passed after larger ones had failed, in bytes; `nil` if none had.
    var appendBytes: Int64?
}

/// What servers have offered, so that they are not asked before every form, and how large appends to them may be, so
/// that not every form finds that out again.
final class ResumptionOffers: Sendable {
    /// How soon a change of the server is noticed.
    private static let lifetime = Duration.seconds(3600)

    /// Limits the memory; a server that is forgotten is asked again.
    private static let maximumCount = 1000

    private let state = Mutex(State())

    private struct State {
        /// By address.
        var support = Entries<ResumptionSupport>()
        /// By origin, because a program is behind all its addresses.
        var versions = Entries<ResumptionVersion>()
        /// By origin, because a proxy is the same for all addresses.
        var appendBytes = Entries<Int64>()
    }

    private struct Entries<Value: Sendable & Equatable>: Sendable {
        private var values: [String: (value: Value, time: ContinuousClock.Instant)] = [:]

        func value(_ key: String, at now: ContinuousClock.Instant) -> Value? {
            guard let entry = values[key], now - entry.time < ResumptionOffers.lifetime else { return nil }
            return entry.value
        }

        mutating func note(_ value: Value, of key: String, at now: ContinuousClock.Instant) {
            // That it was used does not make it newer.
            if self.value(key, at: now) == value { return }
            if values.count >= ResumptionOffers.maximumCount { values.removeAll() }
            values[key] = (value, now)
        }
    }

    /// What is known about an address.
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
