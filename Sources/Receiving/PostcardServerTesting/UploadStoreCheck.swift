public import PostcardFoundation
public import PostcardStore

/// Checks of what every `UploadStore` promises, for the tests of your own store.
///
/// ```swift
/// @Test(arguments: UploadStoreCheck.allCases)
/// func `the store keeps its promises`(check: UploadStoreCheck) async throws {
///     let bucket = try await Bucket.temporary()
///     try await check.run { try await BucketStore(bucket) }
/// }
/// ```
public enum UploadStoreCheck: String, Sendable, CaseIterable {
    // Atomic
    /// An upload is in no listing until it is committed.
    case nothingIsSeenBeforeTheCommit
    /// The record has the fields and files that were sent, each byte of them.
    case recordHoldsWhatWasSent
    /// Nothing of a discarded upload is left.
    case discardedUploadLeavesNothing
    /// Nothing of an upload that was never committed is left after a restart.
    case abandonedUploadLeavesNothing
    /// Uploads at the same time do not mix.
    case uploadsAtOnceStayApart
    // Durable
    /// Records survive a restart, and later ones have greater identifiers.
    case recordsSurviveReopening
    // Reading
    /// Any part of a file can be read.
    case filesAreReadInPieces
    /// Records are listed newest first.
    case listingIsNewestFirst
    /// A listing continues after a given identifier.
    case listingResumesBehindAnIdentifier
    /// What does not exist is `nil`, and no error.
    case unknownIdentifiersAreNoError
    /// A deleted record is gone.
    case deletingRemovesTheRecord
    /// A file that is open stays readable after its record is deleted.
    case openFilesOutliveTheirRecord
    // Idempotent
    /// A key gives the record of the first upload under it.
    case keyGivesTheFirstRecord
    /// A key gives the same record after a restart.
    case keyGivesTheFirstRecordAfterReopening
    /// Uploads of one key at the same time make one record.
    case keyGivesOneRecordToManyAtOnce
    /// A key is refused for another content.
    case keyOfAnotherContentIsRefused
    /// The same key in another scope is another key.
    case keyOfAnotherScopeIsAnotherKey
    /// A key can be used again once its record is deleted.
    case keyIsFreeAfterDeletion
    /// A key can be used again after an upload that failed.
    case keyIsFreeAfterFailure

    /// Runs the check.
    ///
    /// - Parameter open: Opens a store. It must be empty the first time that a check calls this. Each later time it is
    ///   the same store, as after a restart, and the check has released the object from before.
    /// - Throws: ``UploadStoreViolation`` if the store breaks the promise, and the errors of the store.
    public func run<Store: UploadStore>(opening open: () async throws -> Store) async throws {
        let checks = UploadStoreChecks(check: self)
        switch self {
        case .nothingIsSeenBeforeTheCommit: try await checks.nothingIsSeenBeforeTheCommit(try await open())
        case .recordHoldsWhatWasSent: try await checks.recordHoldsWhatWasSent(try await open())
        case .discardedUploadLeavesNothing: try await checks.discardedUploadLeavesNothing(try await open())
        case .abandonedUploadLeavesNothing: try await checks.abandonedUploadLeavesNothing(open)
        case .uploadsAtOnceStayApart: try await checks.uploadsAtOnceStayApart(try await open())
        case .recordsSurviveReopening: try await checks.recordsSurviveReopening(open)
        case .filesAreReadInPieces: try await checks.filesAreReadInPieces(try await open())
        case .listingIsNewestFirst: try await checks.listingIsNewestFirst(try await open())
        case .listingResumesBehindAnIdentifier: try await checks.listingResumesBehindAnIdentifier(try await open())
        case .unknownIdentifiersAreNoError: try await checks.unknownIdentifiersAreNoError(try await open())
        case .deletingRemovesTheRecord: try await checks.deletingRemovesTheRecord(try await open())
        case .openFilesOutliveTheirRecord: try await checks.openFilesOutliveTheirRecord(try await open())
        case .keyGivesTheFirstRecord: try await checks.keyGivesTheFirstRecord(try await open())
        case .keyGivesTheFirstRecordAfterReopening: try await checks.keyGivesTheFirstRecordAfterReopening(open)
        case .keyGivesOneRecordToManyAtOnce: try await checks.keyGivesOneRecordToManyAtOnce(try await open())
        case .keyOfAnotherContentIsRefused: try await checks.keyOfAnotherContentIsRefused(try await open())
        case .keyOfAnotherScopeIsAnotherKey: try await checks.keyOfAnotherScopeIsAnotherKey(try await open())
        case .keyIsFreeAfterDeletion: try await checks.keyIsFreeAfterDeletion(try await open())
        case .keyIsFreeAfterFailure: try await checks.keyIsFreeAfterFailure(try await open())
        }
    }
}

/// A promise that a store does not keep.
public struct UploadStoreViolation: Error, CustomStringConvertible {
    /// The name of the check that found it, such as `recordHoldsWhatWasSent`.
    public let check: String

    /// What the store did, in a sentence.
    public let message: String

    public var description: String { "\(check): \(message)" }
}

extension UploadStoreViolation: LocalizedError {
    public var errorDescription: String? { description }
}
