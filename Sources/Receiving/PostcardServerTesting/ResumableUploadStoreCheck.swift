public import PostcardStore

/// Checks of what every `ResumableUploadStore` promises about unfinished uploads, for the tests of your own store.
///
/// ```swift
/// @Test(arguments: ResumableUploadStoreCheck.allCases)
/// func `the store keeps its promises about unfinished uploads`(check: ResumableUploadStoreCheck) async throws {
///     let bucket = try await Bucket.temporary()
///     try await check.run { try await BucketStore(bucket) }
/// }
/// ```
public enum ResumableUploadStoreCheck: String, Sendable, CaseIterable {
    /// What is known of an unfinished upload survives a restart.
    case factsSurviveReopening
    /// Appended bytes survive a restart.
    case bytesSurviveReopening
    /// Appended bytes follow each other, in pieces of any size.
    case appendedBytesFollowEachOther
    /// Bytes that were reverted are gone.
    case revertedBytesAreGone
    /// Bytes that could be reverted, and were not, are kept.
    case bytesThatCouldBeRevertedAreKept
    /// All requests for an upload share it and its lock.
    case callersShareAnUpload
    /// An upload that has expired is not found.
    case expiredUploadIsGone
    /// A discarded upload is gone, also after a restart.
    case discardedUploadIsGone
    /// The response takes the place of the bytes, and survives a restart.
    case responseReplacesTheBytes
    /// A response is forgotten when its record is deleted.
    case responseIsForgottenWithItsRecord
    /// No response is kept if the options keep none.
    case noResponseIsKeptIfNoneMayBe

    /// Runs the check with a new store.
    ///
    /// - Parameter open: Opens the store. It must be empty the first time it is opened. A check whose promise is about
    ///   a restart opens it again, once the store before is released.
    /// - Throws: ``UploadStoreViolation`` if a promise is not kept, and the errors of the store.
    public func run<Store: ResumableUploadStore>(opening open: () async throws -> Store) async throws {
        let checks = UnfinishedUploadChecks(check: rawValue)
        switch self {
        case .factsSurviveReopening: try await checks.factsSurviveReopening(open)
        case .bytesSurviveReopening: try await checks.bytesSurviveReopening(open)
        case .appendedBytesFollowEachOther: try await checks.appendedBytesFollowEachOther(try await open())
        case .revertedBytesAreGone: try await checks.revertedBytesAreGone(open)
        case .bytesThatCouldBeRevertedAreKept: try await checks.bytesThatCouldBeRevertedAreKept(open)
        case .callersShareAnUpload: try await checks.callersShareAnUpload(try await open())
        case .expiredUploadIsGone: try await checks.expiredUploadIsGone(try await open())
        case .discardedUploadIsGone: try await checks.discardedUploadIsGone(open)
        case .responseReplacesTheBytes: try await checks.responseReplacesTheBytes(open)
        case .responseIsForgottenWithItsRecord: try await checks.responseIsForgottenWithItsRecord(try await open())
        case .noResponseIsKeptIfNoneMayBe: try await checks.noResponseIsKeptIfNoneMayBe(try await open())
        }
    }
}
