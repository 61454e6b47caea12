import PostcardClient
import PostcardFiles
import PostcardFoundation
import PostcardWire
import SystemPackage

/// An error of opening a queue, or of enqueuing or changing an upload.
///
/// ```swift
/// do {
///     try await queue.enqueue(form, to: url)
/// } catch let error as UploadQueueError where error.code == .full {
///     // Nothing of the form was kept. Ask for some space, and enqueue it again.
/// }
/// ```
public struct UploadQueueError: PostcardError {
    /// The kind of error. Its raw values are stable across versions.
    public struct Code: PostcardErrorCode {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        /// The queue's directory cannot be made, read or written, or other users can write to it.
        public static let unusableDirectory = Code(rawValue: "unusable-directory")
        /// The database is damaged or is not that of a queue. Its file stays unchanged.
        public static let damaged = Code(rawValue: "damaged")
        /// The database was made by an older version, and is moved to a new folder (see ``UploadQueue/setAside``).
        static let older = Code(rawValue: "older")
        /// The database was made by a newer version. It stays unchanged.
        public static let newer = Code(rawValue: "newer")
        /// Another process sends from the queue, or a later queue of this process uses the background session.
        public static let inUse = Code(rawValue: "in-use")
        /// The disk is full. The upload was not enqueued or changed, and the queue is intact. If the lack of space was
        /// found before writing, ``UploadQueueError/neededBytes`` and ``UploadQueueError/freeBytes`` have the numbers.
        public static let full = Code(rawValue: "full")
        /// The queue's files cannot be read before the device is unlocked for the first time after a start.
        public static let locked = Code(rawValue: "locked")
        /// The system is about to suspend the app, or is suspending it. Nothing was changed.
        public static let suspended = Code(rawValue: "suspended")
        /// The URL cannot receive a form.
        public static let invalidURL = Code(rawValue: "invalid-url")
        /// The app's tag for the upload has more than 4 KiB.
        public static let tagTooLarge = Code(rawValue: "tag-too-large")
        /// There is no upload with the identifier.
        public static let unknownUpload = Code(rawValue: "unknown-upload")
        /// The state of the upload does not allow the change.
        public static let wrongState = Code(rawValue: "wrong-state")
        /// The system does not accept uploads for the background session, because the session is set up wrongly or the
        /// system ends it again and again. The uploads stay in the queue.
        public static let sessionUnavailable = Code(rawValue: "session-unavailable")
        /// Another process, such as an extension, uses the background session. An extension needs a different session
        /// in each run (see ``BackgroundSession/init(extension:appGroup:)``). The uploads stay in the queue until the
        /// app or an extension hands them to the system again.
        public static let sessionInUse = Code(rawValue: "session-in-use")
        /// The database failed for another reason.
        public static let databaseFailed = Code(rawValue: "database-failed")
    }

    /// The kind of error.
    public let code: Code

    /// What happened, and where, in a sentence.
    public let message: String

    /// What to do, in a sentence; `nil` if nothing helps.
    public let advice: String?

    /// The error of the database or the operating system, if there is one.
    public let underlyingError: (any Error)?

    /// The number of bytes that the form needs, if there was too little free space.
    public private(set) var neededBytes: Int64?

    /// The number of free bytes, if there was too little free space.
    public private(set) var freeBytes: Int64?

    init(_ code: Code, _ message: String, advice: String? = nil, underlyingError: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.advice = advice
        self.underlyingError = underlyingError
    }
}

extension UploadQueueError: PassingError {
    /// Whether the same call may succeed later: after a full disk, a locked device, a suspension or a busy database.
    package var mayPass: Bool { [.full, .locked, .suspended, .databaseFailed].contains(code) }
}

extension UploadQueueError {
    /// What happened, for users of the app: in English or Korean on Apple platforms, and ``message`` elsewhere.
    /// `localizedDescription` returns this text.
    public var errorDescription: String? { localizedMessage.localized ?? message }

    /// What to do, for users of the app: in English or Korean on Apple platforms, and ``advice`` elsewhere.
    public var recoverySuggestion: String? { localizedAdvice.localized ?? advice }

    var localizedMessage: LocalizedText { LocalizedText(key: "UploadQueueError.\(code)") }

    var localizedAdvice: LocalizedText { LocalizedText(key: "UploadQueueError.\(code).advice") }
}

extension LocalizedText {
    /// The sentence in the user's language; `nil` if this module's catalog does not have it, and always on Linux.
    var localized: String? {
        #if canImport(Darwin)
        localized(in: .module)
        #else
        nil
        #endif
    }
}

// MARK: - Factories for the errors of each situation

extension UploadQueueError {
    init(_ error: FileError) {
        if error.isFull {
            self.init(
                .full, "The disk is too full for the queue: \(error).", advice: "Free some space and try again.",
                underlyingError: error)
        } else if Self.filesAreProtected, error.errno == .notPermitted, error.reason == nil {
            // iOS reports this error for protected files before the first unlock.
            self = .locked(error)
        } else {
            self = .unusableDirectory("The queue's directory cannot be used: \(error).", underlyingError: error)
        }
    }

    /// Whether the platform protects files until the device is unlocked for the first time.
    private static var filesAreProtected: Bool {
        #if canImport(Darwin) && !os(macOS)
        true
        #else
        false
        #endif
    }

    static func unusableDirectory(_ message: String, underlyingError: any Error) -> UploadQueueError {
        UploadQueueError(
            .unusableDirectory, message,
            advice:
                "Check that this program can read and write it and that other users cannot write to it, and try again.",
            underlyingError: underlyingError)
    }

    static func locked(_ error: any Error) -> UploadQueueError {
        UploadQueueError(
            .locked, "The queue's files cannot be read before the device is unlocked for the first time after a start.",
            advice: "Try again after the device was unlocked.", underlyingError: error)
    }

    static func suspended(_ error: (any Error)?) -> UploadQueueError {
        UploadQueueError(
            .suspended, "The system is about to suspend the app, so this was not finished. Nothing was changed.",
            advice: "Try again when the app runs.", underlyingError: error)
    }

    static func damaged(_ path: String, _ reason: String, underlyingError: (any Error)? = nil) -> UploadQueueError {
        UploadQueueError(
            .damaged, "The queue's database \(path) cannot be read: \(reason). It was not changed.",
            advice: "Move it away to start with an empty queue.", underlyingError: underlyingError)
    }

    static func newer(_ path: String, version: Int, than supported: Int) -> UploadQueueError {
        UploadQueueError(
            .newer,
            "The queue's database \(path) has version \(version), and this program supports versions up to "
                + "\(supported). It was not changed.",
            advice: "Use the newer program.")
    }

    static func older(_ path: String, version: Int, than current: Int) -> UploadQueueError {
        UploadQueueError(
            .older,
            "The queue's database \(path) has version \(version), and this program needs version \(current). It was not "
                + "changed.",
            advice: "Use the older program, or move the database away.")
    }

    static func inUse(_ path: String) -> UploadQueueError {
        UploadQueueError(
            .inUse, "Another process is sending from the queue in \(path).",
            advice: "Stop that process, or let it send the uploads.")
    }

    static func replaced(_ identifier: String) -> UploadQueueError {
        UploadQueueError(
            .inUse,
            "A later queue of this process uses the background session \(identifier.debugDescription).",
            advice: "Keep one queue for each background session, and use that one.")
    }

    static func databaseFull(_ path: String, _ error: any Error) -> UploadQueueError {
        UploadQueueError(
            .full, "The disk is too full for the queue's database \(path).", advice: "Free some space and try again.",
            underlyingError: error)
    }

    static func full(_ path: String, needed: Int64, free: Int64) -> UploadQueueError {
        var error = UploadQueueError(
            .full, "The form needs \(needed) bytes in the queue's directory \(path), and \(free) are free.",
            advice: "Free some space and try again.")
        error.neededBytes = needed
        error.freeBytes = free
        return error
    }

    static func databaseFailed(_ path: String, _ error: any Error) -> UploadQueueError {
        UploadQueueError(
            .databaseFailed, "The queue's database \(path) failed: \(error).", advice: "Try again.",
            underlyingError: error)
    }

    init(_ problem: SessionProblem) {
        self.init(problem == .inUse ? .sessionInUse : .sessionUnavailable, problem.message, advice: problem.advice)
    }

    static func invalidURL(_ url: URL, _ error: any Error) -> UploadQueueError {
        UploadQueueError(
            .invalidURL, "No form can be sent to \(url.withoutQuery): \(error)",
            advice: "Write the URL as https://host/path.", underlyingError: error)
    }

    static func tagTooLarge(_ bytes: Int, limit: Int) -> UploadQueueError {
        UploadQueueError(
            .tagTooLarge, "The upload's tag has \(bytes) bytes as JSON, and at most \(limit) are stored.",
            advice: "Store large values elsewhere, and use an identifier as the tag.")
    }

    static func unknownUpload(_ id: QueuedUpload.ID) -> UploadQueueError {
        UploadQueueError(.unknownUpload, "There is no upload \(id) in the queue.")
    }

    static func wrongState(_ id: QueuedUpload.ID, _ state: String, cannot change: String) -> UploadQueueError {
        UploadQueueError(.wrongState, "Upload \(id) is \(state) and cannot be \(change).")
    }

    static func signed(_ id: QueuedUpload.ID) -> UploadQueueError {
        UploadQueueError(
            .wrongState, "The form of upload \(id) was signed for its address, so it cannot be sent elsewhere.",
            advice: "Return a form for the other address from QueueOptions.presignedForm, or that of the background "
                + "session, once this one has expired, or cancel the upload and enqueue the file with another form.")
    }

    static func bodyMissing(_ id: QueuedUpload.ID) -> UploadQueueError {
        UploadQueueError(
            .wrongState, "The form of upload \(id) is no longer on disk, so it cannot be retried.",
            advice: "Enqueue the form again.")
    }
}
