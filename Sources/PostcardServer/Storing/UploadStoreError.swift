import PostcardFiles
import SystemPackage

/// Why an operation of a store failed.
public struct UploadStoreError: Error, Sendable, CustomStringConvertible {
    /// The kind of error; stable across versions.
    public enum Code: String, Sendable, Hashable {
        /// There is no room left. The response is a 503 that says so.
        case full
        /// The store failed for another reason, which may pass. The response is a 503.
        case unavailable
        /// A stored upload is not as it was written. The response is a 503, and the upload is not served again.
        case damaged
        /// The upload's key belongs to a record of another content. The response is a 422.
        case keyReused = "idempotency-key-reused"
        /// Another store has the directory open.
        case inUse = "in-use"
        /// The directory cannot be created or written to.
        case unusableDirectory = "unusable-directory"
    }

    /// The kind of error.
    public let code: Code

    /// What happened, where, and what to do.
    public let message: String

    /// The error of the operating system, if it is the cause.
    public let underlying: (any Error)?

    /// Makes an error, for your own store.
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

    /// What was read is not what the store wrote.
    static func damaged(_ path: FilePath, _ error: any Error) -> UploadStoreError {
        UploadStoreError(
            .damaged, "\(path) is not as it was written: \(error)",
            underlying: error)
    }

    /// The upload has the key of a record with other fields or files.
    public static let keyReused = UploadStoreError(
        .keyReused, "The key of the upload belongs to a record of another content. Use a new key for each upload.")

    /// The record that an upload repeats was deleted while the upload was received.
    static let deletedMeanwhile = UploadStoreError(
        .unavailable, "The record of the upload's key was deleted while the upload was received again. Send it again.")

    /// The disk would have less free space than is reserved for others.
    static func reserved(_ free: Int64, _ directory: FilePath, keeping kept: Int64) -> UploadStoreError {
        UploadStoreError(
            .full, "The disk of \(directory) has \(free) free bytes, and \(kept) must stay free. Make room there.")
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
