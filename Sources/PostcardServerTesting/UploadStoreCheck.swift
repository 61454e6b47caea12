public import PostcardFoundation
public import PostcardServer

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
    case nothingIsSeenBeforeTheCommit
    case recordHoldsWhatWasSent
    case discardedUploadLeavesNothing
    case abandonedUploadLeavesNothing
    case uploadsAtOnceStayApart
    // Durable
    case recordsSurviveReopening
    // Reading
    case filesAreReadInPieces
    case listingIsNewestFirst
    case listingResumesBehindAnIdentifier
    case unknownIdentifiersAreNoError
    case deletingRemovesTheRecord
    case openFilesOutliveTheirRecord
    // Idempotent
    case keyGivesTheFirstRecord
    case keyGivesTheFirstRecordAfterReopening
    case keyGivesOneRecordToManyAtOnce
    case keyOfAnotherContentIsRefused
    case keyOfAnotherScopeIsAnotherKey
    case keyIsFreeAfterDeletion
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
