import PostcardFoundation
public import PostcardStore

/// Checks the promises of an `UploadStore`, for the tests of your own store.
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
    /// The record contains all fields and files that were sent, byte for byte.
    case recordHoldsWhatWasSent
    /// A discarded upload leaves nothing behind.
    case discardedUploadLeavesNothing
    /// An upload that was never committed leaves nothing behind after a restart.
    case abandonedUploadLeavesNothing
    /// Simultaneous uploads do not mix.
    case uploadsAtOnceStayApart
    // Durable
    /// Records survive a restart, and later records have greater identifiers.
    case recordsSurviveReopening
    // Reading
    /// Any part of a file can be read.
    case filesAreReadInPieces
    /// Records are listed newest first.
    case listingIsNewestFirst
    /// A listing continues after a given identifier.
    case listingResumesBehindAnIdentifier
    /// Reading a missing record or file returns `nil` and throws no error.
    case unknownIdentifiersAreNoError
    /// A deleted record is gone.
    case deletingRemovesTheRecord
    /// A file that is open stays readable after its record is deleted.
    case openFilesOutliveTheirRecord
    // Idempotent
    /// Uploads with the same key return the record of the first upload.
    case keyGivesTheFirstRecord
    /// A key leads to the same record after a restart.
    case keyGivesTheFirstRecordAfterReopening
    /// Simultaneous uploads with the same key make one record.
    case keyGivesOneRecordToManyAtOnce
    /// A key is refused for different content.
    case keyOfAnotherContentIsRefused
    /// The same key in another scope is another key.
    case keyOfAnotherScopeIsAnotherKey
    /// A key can be used again after its record is deleted.
    case keyIsFreeAfterDeletion
    /// A key can be used again after a failed upload.
    case keyIsFreeAfterFailure

    /// Runs the check.
    ///
    /// - Parameter open: Opens the store. The store must be empty when it is first opened. Further calls open the same
    ///   store again, as after a restart. The previous object is released before.
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
public struct UploadStoreViolation: PostcardError {
    /// The name of the check that failed, such as `recordHoldsWhatWasSent`.
    public let check: String

    /// A sentence that describes the behavior of the store.
    public let message: String

    public var errorDescription: String? { description }

    public var description: String { "\(check): \(message)" }
}
