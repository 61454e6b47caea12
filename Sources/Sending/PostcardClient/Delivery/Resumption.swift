import HTTPTypes
import PostcardFoundation
import PostcardWire

/// What a resumable upload keeps from one attempt to the next: how far it got, and how often it failed since.
struct Resumption: Sendable {
    let policy: ResumptionPolicy

    /// What is known of the server.
    private(set) var server: Server

    /// How large appends may be, as far as failures show.
    var appendSize: AppendSize

    /// How long the upload has taken.
    var elapsed = Duration.zero

    /// Whether a server may have the whole form, and the client does not send such a form again.
    var isUnclear = false

    /// The number of attempts in a row without progress.
    private(set) var failures = 0

    /// The number of responses in a row that rejected what was sent.
    private(set) var rejections = 0

    /// The number of creations that were interrupted before the server had named an upload resource.
    private(set) var lostCreations = 0

    /// After this many lost creations, the upload is an ordinary one: a proxy may break all resumable ones.
    static let maximumLostCreations = 2

    /// The versions in which the server has not made an upload resource.
    private(set) var refusedVersions: Set<ResumptionVersion> = []

    /// Whether the server was asked for its limits because it refused an append.
    var hasAskedForLimits = false

    /// Whether an attempt has failed since the upload last made progress.
    private var hasFailed = false

    /// How many bytes the server had when the failures were last forgotten.
    private var countedBytes: Int64 = 0

    /// What is known of the server.
    enum Server: Sendable {
        /// The server was not asked, or does not resume uploads.
        case unknown
        /// The server resumes uploads, and has nothing of this one.
        case offering(ResumptionOffer)
        /// The server keeps what it has of the form.
        case keeping(Resource, ResumptionOffer?)
    }

    /// An upload resource: where the server keeps what it has of the form.
    struct Resource: Sendable {
        let url: URL
        /// The process that sent the bytes that the server has.
        fileprivate(set) var origin: Origin
        /// The most bytes that the server is known to have.
        fileprivate(set) var acknowledged: Int64 = 0
        /// Whether the server does not answer HEAD, as it would to say how much it has.
        fileprivate(set) var refusesHead = false
        /// When the server removes it, counted from the start of the upload; `nil` if that is not known.
        fileprivate(set) var expiry: Duration?

        fileprivate init(url: URL, origin: Origin) {
            self.url = url
            self.origin = origin
        }

        /// The offsets at which the server can be. It cannot lose what it has acknowledged. It can have more than was
        /// sent, as long as the form has it ("Offset Retrieval").
        func possibleOffsets(of length: Int64) -> ClosedRange<Int64> { min(acknowledged, length)...length }

        /// The process that sent the bytes of an upload resource.
        enum Origin: Sendable, Equatable {
            /// The bytes were sent by an earlier process. Whether the files are still the same was not checked.
            case earlierProcess(isChecked: Bool)
            /// The bytes were sent by this process.
            case here
        }
    }

    /// - Parameters:
    ///   - policy: The client's policy.
    ///   - resource: The upload resource of an earlier process.
    init(_ policy: ResumptionPolicy, resource: URL? = nil) {
        self.policy = policy
        appendSize = AppendSize(policy.cautiousAppendBytes)
        server =
            resource.map { .keeping(Resource(url: $0, origin: .earlierProcess(isChecked: false)), nil) } ?? .unknown
    }

    var resource: Resource? { if case .keeping(let resource, _) = server { resource } else { nil } }

    /// Whether a server may have the form, and only its upload resource can tell.
    var mustResume: Bool { isUnclear && resource != nil }

    /// How the server resumes uploads, if that is known.
    var offer: ResumptionOffer? {
        switch server {
        case .unknown: nil
        case .offering(let offer): offer
        case .keeping(_, let offer): offer
        }
    }

    /// Whether the server can resume the upload.
    var isInProgress: Bool { if case .unknown = server { false } else { true } }

    /// Begins an attempt with a server that resumes uploads.
    mutating func begin(_ offer: ResumptionOffer) {
        server = resource.map { .keeping($0, offer) } ?? .offering(offer)
    }

    /// Adopts the limits in a response of the server.
    ///
    /// - Returns: How the server resumes uploads now.
    mutating func adopt(_ response: UploadResponse, _ offer: ResumptionOffer) -> ResumptionOffer {
        let offer = adopt(response.announcement?.limits, offer)
        return adopt(response.headerFields.uploadLimits(in: offer.version), offer)
    }

    /// Adopts limits.
    ///
    /// - Returns: How the server resumes uploads now.
    mutating func adopt(_ limits: UploadLimits?, _ offer: ResumptionOffer) -> ResumptionOffer {
        guard let limits else { return offer }
        var offer = offer
        offer.adopt(limits)
        if let resource { server = .keeping(resource, offer) }
        if let seconds = limits.lifetimeSeconds { update { [elapsed] in $0.expiry = elapsed + .seconds(seconds) } }
        return offer
    }

    /// Whether the server has removed the upload resource by now, so that it is not asked for it.
    var isExpired: Bool { resource?.expiry.map { elapsed >= $0 } ?? false }

    /// Makes the upload an ordinary one, or ends it: the ordinary policy then decides about another attempt.
    mutating func end() {
        server = .unknown
    }

    /// Records that the server has made an upload resource.
    mutating func create(_ resource: URL, _ offer: ResumptionOffer) {
        server = .keeping(Resource(url: resource, origin: .here), offer)
    }

    /// Records that the server has not made an upload resource in a version.
    ///
    /// - Returns: The version to try next; `nil` if there is none.
    mutating func noteRefusal(of version: ResumptionVersion) -> ResumptionVersion? {
        refusedVersions.insert(version)
        return policy.versions.first { !refusedVersions.contains($0) }
    }

    /// Records that a creation was interrupted, and that no upload resource is known.
    mutating func noteLostCreation() {
        lostCreations += 1
    }

    /// Lets the next attempt be a resumable one again.
    mutating func forgiveLostCreations() {
        lostCreations = 0
    }

    /// Forgets the upload resource: the server has lost it, or has finished with it.
    mutating func forget() {
        guard case .keeping(_, let offer) = server else { return }
        server = offer.map(Server.offering) ?? .unknown
    }

    /// Changes what is known of the upload resource, if there is one.
    private mutating func update(_ change: (inout Resource) -> Void) {
        guard case .keeping(var resource, let offer) = server else { return }
        change(&resource)
        server = .keeping(resource, offer)
    }

    /// Records that the upload resource does not answer HEAD.
    mutating func noteRefusalOfHead() {
        update { $0.refusesHead = true }
    }

    /// Records that the files are those whose bytes the server has.
    mutating func noteChecked() {
        update { if case .earlierProcess = $0.origin { $0.origin = .earlierProcess(isChecked: true) } }
    }

    /// Records how many bytes of the form the server has.
    ///
    /// Failures are forgotten for progress that is worth a request, so that a server whose offset grows by a byte with
    /// each attempt does not keep a client busy.
    mutating func advance(to offset: Int64, of length: Int64) {
        update { $0.acknowledged = max($0.acknowledged, offset) }
        guard offset - countedBytes >= ResumptionOffer.worthwhileBytes(of: length) else { return }
        countedBytes = offset
        failures = 0
        hasFailed = false
    }

    /// Records that the server has accepted what was sent, or that the request was interrupted.
    mutating func forgiveRejections() {
        rejections = 0
    }

    /// Records that the server has accepted nothing of what was sent.
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

/// How large appends may be, as far as the fate of earlier ones shows. Proxies have limits that no response names, and
/// some pass on nothing of a request before they have all of it: then an append that is cut has been in vain.
struct AppendSize: Sendable, Hashable {
    /// The sizes of appends once one has failed for no known reason.
    let cautious: ClosedRange<Int64>

    /// The largest append to try, in bytes; `nil` if none has failed yet.
    private(set) var maximum: Int64?

    /// The size at which an append has passed after larger ones had failed, in bytes, if that says something about
    /// other uploads.
    private(set) var passed: Int64?

    /// The append that was interrupted last, until the server says what it has got of it.
    private var interrupted: Range<Int64>?

    /// The number of interruptions in a row at the same offset, of which the server got nothing.
    private var vainAttempts = 0

    /// Whether appends have failed because of their size, as far as one can tell.
    private var isLimit = false

    init(_ cautious: ClosedRange<Int64>) {
        self.cautious = cautious
    }

    /// Begins with the size that has passed in other uploads.
    mutating func begin(with known: Int64) {
        if maximum == nil { maximum = known }
    }

    /// Records that an append was refused as too large, without a limit.
    ///
    /// - Parameters:
    ///   - count: The number of bytes of the append.
    ///   - minimum: The smallest append that the server accepts.
    /// - Returns: Whether a smaller append is worth trying.
    mutating func noteRefusal(of count: Int64, minimum: Int64) -> Bool {
        isLimit = true
        return lower(from: count, minimum: minimum)
    }

    /// Records that an append was interrupted, or that a proxy got no response to it.
    mutating func noteInterruption(of range: Range<Int64>) {
        interrupted = range
    }

    /// Records how much the server has after an interruption.
    ///
    /// One append in vain is reason enough for smaller ones, so that something of the next one arrives. Below the first
    /// of the cautious sizes, only a second one at the same offset is: the network may have broken by chance.
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
