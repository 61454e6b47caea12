import PostcardFiles
import PostcardFoundation
import SystemPackage

/// Why an operation of a store failed.
public struct UploadStoreError: PostcardError {
    /// The kind of error; stable across versions.
    public struct Code: PostcardErrorCode {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        /// The store has no space left. The response is a 503 that says so.
        public static let full = Code(rawValue: "full")
        /// The store failed for another reason, and may work again later. The response is a 503.
        public static let unavailable = Code(rawValue: "unavailable")
        /// A stored upload is damaged. The response is a 503, and the upload is not served again.
        public static let damaged = Code(rawValue: "damaged")
        /// The upload's key belongs to a record with different content. The response is a 422.
        public static let keyReused = Code(rawValue: "idempotency-key-reused")
        /// Another process has appended to the unfinished upload. The response is a 409 with the offset.
        public static let overtaken = Code(rawValue: "overtaken")
        /// Another store has the directory open.
        public static let inUse = Code(rawValue: "in-use")
        /// The directory cannot be created or written to.
        public static let unusableDirectory = Code(rawValue: "unusable-directory")
    }

    /// The kind of the error.
    public let code: Code

    /// A sentence that says what happened, and where.
    public let message: String

    /// A sentence that says what to do; `nil` if nothing helps.
    public let advice: String?

    /// The error of the operating system, if it is the cause; `nil` otherwise.
    public let underlyingError: (any Error)?

    /// Makes an error of your own store.
    ///
    /// - Parameters:
    ///   - code: The kind of error.
    ///   - message: What happened, and where.
    ///   - advice: What to do. Defaults to `nil`.
    ///   - underlyingError: The error that is the cause. Defaults to `nil`.
    public init(_ code: Code, _ message: String, advice: String? = nil, underlyingError: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.advice = advice
        self.underlyingError = underlyingError
    }
}

extension UploadStoreError {
    /// Makes the error for a failed operation on the store's files.
    init(_ error: FileError) {
        if error.isFull {
            self.init(
                .full, "There is no room left to \(error.action) \(error.path.shown): \(error.errno)",
                advice: "Make room there.", underlyingError: error.errno)
        } else {
            let reason = error.reason ?? "\(error.errno)"
            self.init(
                .unavailable, "Could not \(error.action) \(error.path.shown): \(reason)", underlyingError: error.errno)
        }
    }

    /// Makes the error for a file or directory of the store that could not be read.
    static func unreadable(_ action: String, _ path: FilePath, _ error: any Error) -> UploadStoreError {
        UploadStoreError(.unavailable, "Could not \(action) \(path.shown): \(shown(error))", underlyingError: error)
    }

    /// Makes the error for data that differs from what the store wrote.
    static func damaged(_ path: FilePath, _ error: any Error) -> UploadStoreError {
        UploadStoreError(.damaged, "\(path.shown) is not as it was written: \(shown(error))", underlyingError: error)
    }

    /// Describes an error. Paths are shortened as in `FilePath.shown`, because they may give access to an upload.
    private static func shown(_ error: any Error) -> String {
        (error as? FileError).map { UploadStoreError($0).message } ?? "\(error)"
    }

    /// The key of the upload already has a record with other fields or files.
    public static let keyReused = UploadStoreError(
        .keyReused, "The key of the upload belongs to a record of another content.",
        advice: "Use a new key for each upload.")

    /// Another process has already stored bytes at the offset of an append.
    public static let overtaken = UploadStoreError(
        .overtaken, "Another receiver has appended to the upload at the same offset.",
        advice: "Ask for the offset, and resume there.")

    /// The record that an upload repeats was deleted while the upload was received.
    package static let deletedMeanwhile = UploadStoreError(
        .unavailable, "The record of the upload's key was deleted while the upload was received again.",
        advice: "Send it again.")

    /// Makes the error for a disk that would have less free space than the store must leave free.
    static func reserved(_ free: Int64, _ directory: FilePath, keeping kept: Int64) -> UploadStoreError {
        UploadStoreError(
            .full, "The disk of \(directory) has \(free) free bytes, and \(kept) must stay free.",
            advice: "Make room there.")
    }

    /// Makes the error for a disk that can hold fewer further files than an upload may need.
    static func outOfFiles(_ free: Int64, _ directory: FilePath, keeping kept: Int64) -> UploadStoreError {
        UploadStoreError(
            .full, "The disk of \(directory) has room for \(free) more files (inodes), and \(kept) must stay free.",
            advice: "Remove files there.")
    }

    static func inUse(_ directory: FilePath) -> UploadStoreError {
        UploadStoreError(
            .inUse, "Another receiver has the directory \(directory) open.",
            advice: "End it, or use another directory.")
    }

    static func unusable(_ directory: FilePath, _ error: any Error) -> UploadStoreError {
        let cause = (error as? FileError)?.errno ?? (error as? UploadStoreError)?.underlyingError ?? error
        return UploadStoreError(
            .unusableDirectory, "The directory \(directory) cannot be used to store uploads: \(cause)",
            advice: "Check that this program can read and write it, or use another directory.", underlyingError: cause)
    }
}

extension FilePath {
    /// The path for messages. Names in `.unfinished` are shortened, because they allow anyone to append to the upload.
    var shown: String {
        var names = string.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        for index in names.indices.dropFirst() where names[index - 1] == ".unfinished" {
            names[index] = "\(names[index].prefix(6))…"
        }
        return names.joined(separator: "/")
    }
}
