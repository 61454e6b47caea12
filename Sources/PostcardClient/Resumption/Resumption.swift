#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What an upload that can be resumed keeps from one attempt to the next.
struct Resumption: Sendable {
    let policy: ResumptionPolicy

    /// Where the server keeps what it has of the form: the upload resource.
    private(set) var resource: URL?

    /// The attempts in a row that brought the upload no further.
    private(set) var failures = 0

    /// The answers in a row that rejected what was sent.
    private(set) var rejections = 0

    /// The most bytes that the upload resource can have; `nil` where an earlier process has sent some.
    private(set) var maximumOffset: Int64?

    /// How the server takes the upload, once that is known.
    private(set) var offer: ResumptionOffer?

    /// The request of the latest attempt that the server was to resume.
    private(set) var request: UploadRequest?

    /// Whether the server has said in the latest attempt that it has not got the whole form.
    private(set) var isKnownIncomplete = false

    /// The most bytes of the form that the server has said to have.
    private var highest: Int64 = 0

    /// Whether an earlier process has sent what the server has.
    private var isInherited: Bool

    private let keep: (@Sendable (URL?) throws -> Void)?

    /// - Parameters:
    ///   - policy: The client's.
    ///   - resource: Where an earlier process left what the server has.
    ///   - keep: Writes down where that is, for a later process; `nil` once there is nothing any more.
    init(_ policy: ResumptionPolicy, resource: URL?, keep: (@Sendable (URL?) throws -> Void)?) {
        self.policy = policy
        self.resource = resource
        isInherited = resource != nil
        self.keep = keep
    }

    /// Whether a failure is one of an upload that the server can resume.
    var isUnderWay: Bool { resource != nil || offer != nil }

    /// An attempt begins whose server offers to resume it.
    mutating func begin(_ request: UploadRequest, _ offer: ResumptionOffer) {
        isKnownIncomplete = false
        self.request = request
        self.offer = offer
    }

    /// The upload is an ordinary one.
    mutating func end() throws {
        offer = nil
        try forget()
    }

    mutating func create(_ resource: URL) throws {
        self.resource = resource
        maximumOffset = 0
        try keep?(resource)
    }

    /// The server has lost what it had, or has done with it.
    mutating func forget() throws {
        guard resource != nil else { return }
        resource = nil
        isInherited = false
        try keep?(nil)
    }

    /// Whether an earlier process has sent what the server has; said once.
    mutating func takeIsInherited() -> Bool {
        defer { isInherited = false }
        return isInherited
    }

    /// The server says that the form is not whole.
    mutating func noteIncomplete() {
        isKnownIncomplete = true
    }

    /// The server says how many bytes it has.
    mutating func advance(to offset: Int64) {
        guard offset > highest else { return }
        highest = offset
        failures = 0
    }

    /// Bytes up to an offset were sent, and the server may have taken them.
    mutating func noteSent(upTo offset: Int64) {
        maximumOffset = maximumOffset.map { max($0, offset) }
        rejections = 0
    }

    /// The server has taken none of what was sent.
    mutating func noteRejection() {
        rejections += 1
        failures += 1
    }

    mutating func noteFailure() {
        failures += 1
    }
}
