#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What a resumable upload keeps from one attempt to the next.
struct Resumption: Sendable {
    let policy: ResumptionPolicy

    /// The upload resource: where the server keeps what it has of the form.
    private(set) var resource: URL?

    /// The number of attempts in a row without progress.
    private(set) var failures = 0

    /// The number of responses in a row that rejected what was sent.
    private(set) var rejections = 0

    /// The most bytes that the upload resource can have; `nil` if an earlier process has sent some.
    private(set) var maximumOffset: Int64?

    /// How the server supports resumption, once that is known.
    private(set) var offer: ResumptionOffer?

    /// The request of the latest resumable attempt.
    private(set) var request: UploadRequest?

    /// Whether the server has said in the latest attempt that it does not have the whole form.
    private(set) var isKnownIncomplete = false

    /// How many bytes the server had when the failures were last forgotten.
    private var counted: Int64 = 0

    /// Whether an earlier process has sent what the server has.
    private var isInherited: Bool

    private let save: (@Sendable (URL?) throws -> Void)?

    /// - Parameters:
    ///   - policy: The client's policy.
    ///   - resource: The upload resource of an earlier process.
    ///   - save: Saves the upload resource for a later process; `nil` once there is none.
    init(_ policy: ResumptionPolicy, resource: URL?, save: (@Sendable (URL?) throws -> Void)?) {
        self.policy = policy
        self.resource = resource
        isInherited = resource != nil
        self.save = save
    }

    /// Whether the server can resume the upload.
    var isInProgress: Bool { resource != nil || offer != nil }

    /// Begins an attempt whose server supports resumption.
    mutating func begin(_ request: UploadRequest, _ offer: ResumptionOffer) {
        isKnownIncomplete = false
        self.request = request
        self.offer = offer
    }

    /// Makes the upload an ordinary one.
    mutating func end() throws {
        offer = nil
        try forget()
    }

    /// Records that the server has made an upload resource.
    mutating func create(_ resource: URL) throws {
        self.resource = resource
        maximumOffset = 0
        try save?(resource)
    }

    /// Forgets the upload resource: the server has lost it, or has finished with it.
    mutating func forget() throws {
        guard resource != nil else { return }
        resource = nil
        isInherited = false
        try save?(nil)
    }

    /// Whether an earlier process has sent what the server has; `true` at most once.
    mutating func takeIsInherited() -> Bool {
        defer { isInherited = false }
        return isInherited
    }

    /// Records that the server does not have the whole form.
    mutating func noteIncomplete() {
        isKnownIncomplete = true
    }

    /// Records how many bytes of the form the server has.
    ///
    /// Failures are forgotten for progress that is worth a request, so that a server whose offset grows by a byte with
    /// each attempt does not keep a client busy.
    mutating func advance(to offset: Int64, of length: Int64) {
        guard offset - counted >= ResumptionOffer.worthwhileBytes(of: length) else { return }
        counted = offset
        failures = 0
    }

    /// Records that bytes up to an offset were sent, and may have been accepted.
    mutating func noteSent(upTo offset: Int64) {
        maximumOffset = maximumOffset.map { max($0, offset) }
        rejections = 0
    }

    /// Records that the server has accepted nothing of what was sent.
    mutating func noteRejection() {
        rejections += 1
        failures += 1
    }

    /// Records that an attempt has failed.
    mutating func noteFailure() {
        failures += 1
    }
}
