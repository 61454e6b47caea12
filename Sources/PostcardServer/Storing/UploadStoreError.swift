import PostcardFiles
import SystemPackage

/// Why a store could not do what it was asked.
public struct UploadStoreError: Error, Sendable, CustomStringConvertible {
    /// What kind of error it is; stable across versions.
    public enum Code: String, Sendable, Hashable {
        /// There is no room left: a receiver answers 503 and says so.
        case full
        /// The store failed for another reason, which may pass: a receiver answers 503.
        case unavailable
        /// The upload's key belongs to a record of another content: a receiver answers 422.
        case keyReused = "idempotency-key-reused"
        /// Another receiver has the directory open.
        case inUse = "in-use"
        /// The directory cannot be made or written to.
        case unusableDirectory = "unusable-directory"
    }

    /// What kind of error it is.
    public let code: Code

    /// What happened, where, and what to do.
    public let message: String

    /// What the operating system said, where it was asked.
    public let underlying: (any Error)?

    /// For stores of one's own.
    public init(_ code: Code, _ message: String, underlying: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.underlying = underlying
    }

    public var description: String { message }
}

extension UploadStoreError {
    /// An operation on the store's files failed.
    init(_ error: FileError) {
        if error.isFull {
            self.init(
                .full, "There is no room left to \(error.action) \(error.path): \(error.errno)",
                underlying: error.errno)
        } else {
            self.init(.unavailable, "\(error)", underlying: error.errno)
        }
    }

    /// A file or directory of the store could not be read, for a reason that may not be the system's.
    static func unreadable(_ action: String, _ path: FilePath, _ error: any Error) -> UploadStoreError {
        UploadStoreError(.unavailable, "Could not \(action) \(path): \(error)", underlying: error)
    }

    /// An upload has the key of a record with other fields or files. For stores of one's own.
    public static let keyReused = UploadStoreError(
        .keyReused, "The key of the upload belongs to a record of another content. Use a new key for each upload.")

    /// An upload was to be the repetition of a record that was deleted while it came in.
    static let deletedMeanwhile = UploadStoreError(
        .unavailable, "The record of the upload's key was deleted while the upload came in again. Send it again.")

    /// The room that is to stay free would be used up.
    static func reserved(_ free: Int64, _ directory: FilePath, keeping kept: Int64) -> UploadStoreError {
        UploadStoreError(
            .full, "\(free) bytes are free where \(directory) lies, and \(kept) are to stay free. Make room there.")
    }

    static func inUse(_ directory: FilePath) -> UploadStoreError {
        UploadStoreError(
            .inUse, "Another receiver has the directory \(directory) open. End it, or use another directory.")
    }

    static func unusable(_ directory: FilePath, _ error: any Error) -> UploadStoreError {
        let cause = (error as? FileError)?.errno ?? (error as? UploadStoreError)?.underlying ?? error
        return UploadStoreError(
            .unusableDirectory, "The directory \(directory) cannot be used to store uploads: \(cause)",
            underlying: cause)
    }
}
