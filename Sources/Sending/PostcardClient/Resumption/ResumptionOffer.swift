import HTTPTypes
import PostcardFoundation
import PostcardWire
import Synchronization

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
