import PostcardClient
import PostcardFiles
import SystemPackage

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Why a queue cannot be opened, or cannot accept or change an upload.
public struct UploadQueueError: Error, Sendable, CustomStringConvertible {
    /// The kind of error; stable across versions.
    public struct Code: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The kind as a word, such as `in-use`.
        public let rawValue: String

        /// Makes a kind of error from its word, known or not.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The queue's directory cannot be made, read or written, or others can write to it.
        public static let unusableDirectory = Code(rawValue: "unusable-directory")
        /// The file is not a queue's database, or it is damaged. It was left as it is.
        public static let damaged = Code(rawValue: "damaged")
        /// A newer version made the database. It was left as it is.
        public static let newer = Code(rawValue: "newer")
        /// Another process sends from the queue, or another queue of this process uses the background session.
        public static let inUse = Code(rawValue: "in-use")
        /// There is no room left. The upload was not accepted, and the queue is unharmed.
        public static let full = Code(rawValue: "full")
        /// The device has not been unlocked since it was started, and the queue's files cannot be read before that.
        public static let locked = Code(rawValue: "locked")
        /// There is no upload with that identifier.
        public static let unknown = Code(rawValue: "unknown")
        /// The upload is in a state in which that cannot be done.
        public static let state = Code(rawValue: "state")
        /// The database failed for another reason.
        public static let failed = Code(rawValue: "failed")

        public var description: String { rawValue }
    }

    /// The kind of error.
    public let code: Code

    /// What happened, where, and what to do.
    public let message: String

    /// What the database or the operating system reported, if it was asked.
    public let underlying: (any Error)?

    init(_ code: Code, _ message: String, underlying: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.underlying = underlying
    }

    public var description: String { message }

    /// Whether the same may work later: the disk was full, the device locked, or the database busy.
    var mayPass: Bool { [.full, .locked, .failed].contains(code) }
}

extension UploadQueueError: LocalizedError {
    /// What happened, in the user's language. On Linux, and for a code without a translation, it is the English ``message``.
    public var errorDescription: String? { localizedMessage.localized ?? message }

    /// What to do, in the user's language; `nil` on Linux, where the ``message`` says it.
    public var recoverySuggestion: String? { localizedAdvice.localized }

    var localizedMessage: LocalizedText { LocalizedText(key: "UploadQueueError.\(code)") }

    var localizedAdvice: LocalizedText { LocalizedText(key: "UploadQueueError.\(code).advice") }
}

extension LocalizedText {
    /// The sentence in the user's language; `nil` if this module's catalog does not have it, and on Linux.
    fileprivate var localized: String? {
        #if canImport(Darwin)
        localized(in: .module)
        #else
        nil
        #endif
    }
}

extension UploadQueueError {
    init(_ error: FileError) {
        if error.isFull {
            self.init(.full, "There is no room left for the queue: \(error)", underlying: error)
        } else if error.errno == .notPermitted, error.reason == nil {
            // What iOS answers for protected files before the first unlock.
            self = .locked(error)
        } else {
            self.init(.unusableDirectory, "The queue's directory cannot be used. \(error)", underlying: error)
        }
    }

    static func locked(_ error: any Error) -> UploadQueueError {
        UploadQueueError(
            .locked,
            "The queue's files cannot be read until the device is unlocked for the first time after it was started. "
                + "Try again then.", underlying: error)
    }

    static func damaged(_ path: String, _ reason: String, underlying: (any Error)? = nil) -> UploadQueueError {
        UploadQueueError(
            .damaged,
            "The queue's database \(path) cannot be read: \(reason). It was left as it is; move it away to start over.",
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

    static func sessionInUse(_ identifier: String) -> UploadQueueError {
        UploadQueueError(
            .inUse,
            "Another queue of this process uses the background session \(identifier.debugDescription). Keep one queue "
                + "for each session.")
    }

    static func unknown(_ id: QueuedUpload.ID) -> UploadQueueError {
        UploadQueueError(.unknown, "There is no upload \(id) in the queue.")
    }

    static func state(_ id: QueuedUpload.ID, _ state: String, cannot what: String) -> UploadQueueError {
        UploadQueueError(.state, "The upload \(id) is \(state) and cannot be \(what).")
    }

    static func bodyMissing(_ id: QueuedUpload.ID) -> UploadQueueError {
        UploadQueueError(
            .state, "The form of the upload \(id) is no longer on disk, so it cannot be retried. Enqueue it again.")
    }
}
