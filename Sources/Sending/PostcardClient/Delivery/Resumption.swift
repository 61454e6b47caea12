import HTTPTypes
import PostcardFoundation
import PostcardWire

/// The progress of a resumable upload from one attempt to the next, and its failures since the last progress.
struct Resumption: Sendable {
    let policy: ResumptionPolicy

    /// The known facts about the server and its upload resource.
    private(set) var server: Server

    /// The size of the next append, learned from failures.
    var appendSize: AppendSize

    /// How long the upload has taken so far.
    var elapsed = Duration.zero

    /// Whether a server may have the whole form, and the policy forbids sending such a form again.
    var isUnclear = false

    /// The number of attempts in a row without progress.
    private(set) var failures = 0

    /// The number of responses in a row that rejected the bytes sent.
    private(set) var rejections = 0

    /// The number of creations that were interrupted before the server named an upload resource.
    private(set) var lostCreations = 0

    /// The number of lost creations, perhaps due to a proxy, after which the form is sent as an ordinary upload.
    static let maximumLostCreations = 2

    /// The draft versions in which the server has not made an upload resource.
    private(set) var refusedVersions: Set<ResumptionVersion> = []

    /// Whether the client has asked the server for its limits because an append was refused.
    var hasAskedForLimits = false

    /// Whether an attempt has failed since the upload last made progress.
    private var hasFailed = false

    /// The number of bytes on the server when ``failures`` was last reset.
    private var countedBytes: Int64 = 0

    /// The known facts about the server and its upload resource.
    enum Server: Sendable {
        /// The server was not asked about resumption, or does not resume uploads.
        case unknown
        /// The server resumes uploads, and has no bytes of this form yet.
        case offering(ResumptionOffer)
        /// The server has an upload resource for the form.
        case keeping(Resource, ResumptionOffer?)
    }

    /// An upload resource: the URL at which the server keeps the form's bytes.
    struct Resource: Sendable {
        let url: URL
        /// The process that sent the bytes on the server.
        fileprivate(set) var origin: Origin
        /// The largest number of bytes that the server has acknowledged.
        fileprivate(set) var acknowledged: Int64 = 0
        /// Whether the server does not answer HEAD requests for the offset.
        fileprivate(set) var refusesHead = false
        /// When the server deletes the resource, counted from the start of the upload; `nil` if that is not known.
        fileprivate(set) var expiry: Duration?

        fileprivate init(url: URL, origin: Origin) {
            self.url = url
            self.origin = origin
        }

        /// The offsets that the server can report: at least the acknowledged bytes, which the server cannot lose, and
        /// at most the length of the form ("Offset Retrieval").
        func possibleOffsets(of length: Int64) -> ClosedRange<Int64> { min(acknowledged, length)...length }

        /// The process that sent the bytes of an upload resource.
        enum Origin: Sendable, Equatable {
            /// An earlier process sent the bytes. `isChecked` says whether the files were found unchanged since then.
            case earlierProcess(isChecked: Bool)
            /// This process sent the bytes.
            case here
        }
    }

    /// Makes the state of an upload before its first attempt in this process.
    ///
    /// - Parameters:
    ///   - policy: The client's policy.
    ///   - resource: The upload resource of an earlier process. Defaults to `nil`: there is none.
    init(_ policy: ResumptionPolicy, resource: URL? = nil) {
        self.policy = policy
        appendSize = AppendSize(policy.cautiousAppendBytes)
        server =
            resource.map { .keeping(Resource(url: $0, origin: .earlierProcess(isChecked: false)), nil) } ?? .unknown
    }

    var resource: Resource? { if case .keeping(let resource, _) = server { resource } else { nil } }

    /// Whether the form may have arrived and there is an upload resource. The client must then ask that resource before
    /// it sends the form again.
    var mustResume: Bool { isUnclear && resource != nil }

    /// The server's offer to resume uploads, if it is known.
    var offer: ResumptionOffer? {
        switch server {
        case .unknown: nil
        case .offering(let offer): offer
        case .keeping(_, let offer): offer
        }
    }

    /// Whether the server is known to resume this upload.
    var isInProgress: Bool { if case .unknown = server { false } else { true } }

    /// Begins an attempt with the server's offer to resume uploads.
    mutating func begin(_ offer: ResumptionOffer) {
        server = resource.map { .keeping($0, offer) } ?? .offering(offer)
    }

    /// Adopts the upload limits that a response names.
    ///
    /// - Returns: The server's offer with the new limits.
    mutating func adopt(_ response: UploadResponse, _ offer: ResumptionOffer) -> ResumptionOffer {
        let offer = adopt(response.announcement?.limits, offer)
        return adopt(response.headerFields.uploadLimits(in: offer.version), offer)
    }

    /// Adopts the server's new upload limits.
    ///
    /// - Returns: The server's offer with the new limits.
    mutating func adopt(_ limits: UploadLimits?, _ offer: ResumptionOffer) -> ResumptionOffer {
        guard let limits else { return offer }
        var offer = offer
        offer.adopt(limits)
        if let resource { server = .keeping(resource, offer) }
        if let seconds = limits.lifetimeSeconds { update { [elapsed] in $0.expiry = elapsed + .seconds(seconds) } }
        return offer
    }

    /// Whether the server has deleted the upload resource by now, so that asking for its offset is useless.
    var isExpired: Bool { resource?.expiry.map { elapsed >= $0 } ?? false }

    /// Stops resuming. The ordinary policy then decides about another attempt.
    mutating func end() {
        server = .unknown
    }

    /// Records that the server has made an upload resource.
    mutating func create(_ resource: URL, _ offer: ResumptionOffer) {
        server = .keeping(Resource(url: resource, origin: .here), offer)
    }

    /// Records that the server has refused to make an upload resource in a draft version.
    ///
    /// - Returns: The version to try next; `nil` if there is none.
    mutating func noteRefusal(of version: ResumptionVersion) -> ResumptionVersion? {
        refusedVersions.insert(version)
        return policy.versions.first { !refusedVersions.contains($0) }
    }

    /// Records that a creation was interrupted before its upload resource had a known URL.
    mutating func noteLostCreation() {
        lostCreations += 1
    }

    /// Resets the number of lost creations, so that the next attempt can be resumable.
    mutating func forgiveLostCreations() {
        lostCreations = 0
    }

    /// Forgets the upload resource, because the server has lost it or has finished the upload.
    mutating func forget() {
        guard case .keeping(_, let offer) = server else { return }
        server = offer.map(Server.offering) ?? .unknown
    }

    /// Changes the known upload resource, if there is one.
    private mutating func update(_ change: (inout Resource) -> Void) {
        guard case .keeping(var resource, let offer) = server else { return }
        change(&resource)
        server = .keeping(resource, offer)
    }

    /// Records that the upload resource does not answer HEAD.
    mutating func noteRefusalOfHead() {
        update { $0.refusesHead = true }
    }

    /// Records that the files have not changed since their bytes were sent.
    mutating func noteChecked() {
        update { if case .earlierProcess = $0.origin { $0.origin = .earlierProcess(isChecked: true) } }
    }

    /// Records how many bytes of the form the server has.
    ///
    /// Resets the number of failures once the offset has grown by ``ResumptionOffer/worthwhileBytes(of:)``. One byte is
    /// not enough: a server that accepts one byte with each attempt must not keep the client busy.
    mutating func advance(to offset: Int64, of length: Int64) {
        update { $0.acknowledged = max($0.acknowledged, offset) }
        guard offset - countedBytes >= ResumptionOffer.worthwhileBytes(of: length) else { return }
        countedBytes = offset
        failures = 0
        hasFailed = false
    }

    /// Resets the number of rejections, because the server has accepted bytes or the request was interrupted.
    mutating func forgiveRejections() {
        rejections = 0
    }

    /// Records that the server has accepted none of the bytes sent.
    mutating func noteRejection() {
        rejections += 1
        failures += 1
    }

    /// Records that an attempt has failed.
    ///
    /// - Returns: `true` for the first failure since the upload made progress.
    mutating func noteFailure() -> Bool {
        defer { hasFailed = true }
        failures += 1
        return !hasFailed
    }
}

/// The size of appends, learned from earlier appends. Proxies have limits that no response names. Some proxies collect
/// a whole request before they forward it, so the bytes of an interrupted append are lost.
struct AppendSize: Sendable, Hashable {
    /// The range of sizes to use for appends after an append has failed for an unknown reason.
    let cautious: ClosedRange<Int64>

    /// The largest append to try, in bytes; `nil` if none has failed yet.
    private(set) var maximum: Int64?

    /// The append size in bytes that succeeded after larger appends had failed. Other uploads begin with this size.
    /// `nil` if there is none.
    private(set) var passed: Int64?

    /// The latest interrupted append; `nil` once the server has reported how many of its bytes arrived.
    private var interrupted: Range<Int64>?

    /// The number of appends in a row that were interrupted at the same offset before the server received any bytes.
    private var vainAttempts = 0

    /// Whether appends have probably failed because of their size.
    private var isLimit = false

    init(_ cautious: ClosedRange<Int64>) {
        self.cautious = cautious
    }

    /// Begins with the size at which appends have succeeded in other uploads.
    mutating func begin(with known: Int64) {
        if maximum == nil { maximum = known }
    }

    /// Records that an append was refused as too large, and that the response names no limit.
    ///
    /// - Parameters:
    ///   - count: The number of bytes of the append.
    ///   - minimum: The smallest append that the server accepts.
    /// - Returns: Whether a smaller append is worth trying.
    mutating func noteRefusal(of count: Int64, minimum: Int64) -> Bool {
        isLimit = true
        return lower(from: count, minimum: minimum)
    }

    /// Records that an append was interrupted, or that a proxy got no response to the append from the server.
    mutating func noteInterruption(of range: Range<Int64>) {
        interrupted = range
    }

    /// Records the server's offset after an interruption.
    ///
    /// If the server received nothing of an append above the range ``cautious``, the next appends are smaller, so that
    /// some bytes arrive. An append that was not above the range may have failed by chance. So its first failure at an
    /// offset does not reduce the size.
    mutating func noteOffset(_ offset: Int64, minimum: Int64) {
        guard let range = interrupted, !range.isEmpty else { return }
        interrupted = nil
        guard offset == range.lowerBound else {
            vainAttempts = 0
            return
        }
        vainAttempts += 1
        let count = range.upperBound - range.lowerBound
        if vainAttempts > 1 { isLimit = true }
        if vainAttempts > 1 || count > cautious.upperBound { _ = lower(from: count, minimum: minimum) }
    }

    /// Records that an append was accepted.
    mutating func noteSuccess(of count: Int64) {
        interrupted = nil
        vainAttempts = 0
        if isLimit, count == maximum { passed = count }
    }

    private mutating func lower(from count: Int64, minimum: Int64) -> Bool {
        let smallest = max(cautious.lowerBound, minimum)
        guard count > smallest else { return false }
        let lower = max(count > cautious.upperBound ? cautious.upperBound : count / 2, smallest)
        guard lower < maximum ?? .max else { return false }
        maximum = lower
        return true
    }
}
