#if Queue
#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Why a queue cannot be opened, or cannot take or change an upload.
public struct UploadQueueError: Error, Sendable, CustomStringConvertible {
    /// What kind of error it is; stable across versions.
    public enum Code: String, Sendable, Hashable {
        /// The queue's directory cannot be made or written to.
        case unusableDirectory = "unusable-directory"
        /// The file is no database of a queue, or it is damaged. It was left as it is.
        case damaged
        /// The database was made by a newer version. It was left as it is.
        case newer
        /// Another process sends from the queue.
        case inUse = "in-use"
        /// There is no room left: the upload was not taken, and nothing else was harmed.
        case full
        /// The form holds a stream, which does not outlive the process.
        case stream
        /// There is no upload of that identifier.
        case unknown
        /// The upload is in a state in which that cannot be done.
        case state
        /// The database failed for another reason.
        case failed
    }

    /// What kind of error it is.
    public let code: Code

    /// What happened, where, and what to do.
    public let message: String

    /// What the database or the operating system said, where it was asked.
    public let underlying: (any Error)?

    init(_ code: Code, _ message: String, underlying: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.underlying = underlying
    }

    public var description: String { message }
}

extension UploadQueueError: LocalizedError {
    public var errorDescription: String? { message }
}

extension UploadQueueError {
    static func unusableDirectory(_ path: String, _ error: any Error) -> UploadQueueError {
        UploadQueueError(
            .unusableDirectory, "The directory \(path) cannot be used for a queue: \(error)", underlying: error)
    }

    static func damaged(_ path: String, _ reason: String, underlying: (any Error)? = nil) -> UploadQueueError {
        UploadQueueError(
            .damaged,
            "The queue's database \(path) cannot be read: \(reason). It was left as it is; move it away to begin anew.",
            underlying: underlying)
    }

    static func newer(_ path: String, version: Int) -> UploadQueueError {
        UploadQueueError(
            .newer,
            "The queue's database \(path) has version \(version), and this program knows versions up to "
                + "\(QueueDatabase.version). It was left as it is; use the newer program.")
    }

    static func inUse(_ path: String) -> UploadQueueError {
        UploadQueueError(
            .inUse, "Another process sends from the queue in \(path). End it, or let it do the work.")
    }

    static func stream(named name: String) -> UploadQueueError {
        UploadQueueError(
            .stream,
            "The part \(name.debugDescription) is a stream, which is gone with this process. Write it to a file first, "
                + "and append that.")
    }

    static func unknown(_ id: QueuedUpload.ID) -> UploadQueueError {
        UploadQueueError(.unknown, "There is no upload \(id) in the queue.")
    }

    static func state(_ id: QueuedUpload.ID, _ state: QueuedUpload.State, cannot what: String) -> UploadQueueError {
        UploadQueueError(.state, "The upload \(id) is \(state.name) and cannot be \(what).")
    }
}
#endif
