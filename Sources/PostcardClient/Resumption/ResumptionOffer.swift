import HTTPTypes
import PostcardFoundation
import PostcardResumption
import Synchronization

/// How a server supports resumable uploads.
struct ResumptionOffer: Sendable, Hashable {
    let version: ResumptionVersion
    private(set) var limits: UploadLimits

    init(version: ResumptionVersion, limits: UploadLimits) {
        self.version = version
        self.limits = limits
    }

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
    mutating func adopt(_ fields: HTTPFields) {
        guard let others = fields.uploadLimits(in: version) else { return }
        limits.maximumBytes = others.maximumBytes ?? limits.maximumBytes
        limits.minimumBytes = others.minimumBytes ?? limits.minimumBytes
        limits.maximumAppendBytes = others.maximumAppendBytes ?? limits.maximumAppendBytes
        limits.minimumAppendBytes = others.minimumAppendBytes ?? limits.minimumAppendBytes
        limits.lifetimeSeconds = others.lifetimeSeconds ?? limits.lifetimeSeconds
    }
}

/// What a server has said about resumption.
enum ResumptionSupport: Sendable, Hashable {
    case unknown
    /// The server does not resume uploads.
    case unsupported
    case offered(ResumptionOffer)
}

/// What is known of a server, and of the proxies before it, from other uploads.
struct KnownServer: Sendable, Hashable {
    var support = ResumptionSupport.unknown
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
        /// By origin, because a proxy is the same for all addresses.
        var appendBytes = Entries<Int64>()
    }

    private struct Entries<Value: Sendable>: Sendable {
        private var values: [String: (value: Value, time: ContinuousClock.Instant)] = [:]

        subscript(key: String) -> Value? {
            get {
                guard let entry = values[key], .now - entry.time < ResumptionOffers.lifetime else { return nil }
                return entry.value
            }
            set {
                if values.count >= ResumptionOffers.maximumCount { values.removeAll() }
                if let newValue { values[key] = (newValue, .now) } else { values[key] = nil }
            }
        }
    }

    /// What is known about an address.
    func known(for url: URL) -> KnownServer {
        state.withLock { state in
            KnownServer(
                support: state.support[Self.key(url)] ?? .unknown, appendBytes: state.appendBytes[url.origin])
        }
    }

    func note(_ support: ResumptionSupport, for url: URL) {
        state.withLock { $0.support[Self.key(url)] = support }
    }

    func note(appendBytes: Int64, for url: URL) {
        state.withLock { $0.appendBytes[url.origin] = appendBytes }
    }

    private static func key(_ url: URL) -> String {
        url.origin + url.path(percentEncoded: true)
    }
}
