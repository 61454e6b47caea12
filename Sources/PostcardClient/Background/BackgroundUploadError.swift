public import Foundation

/// What is wrong with the folder of ``BackgroundUploads``, or with what was asked of it.
public struct BackgroundUploadError: Error, Sendable, CustomStringConvertible {
    /// What kind of error it is; stable across versions.
    public struct Code: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The kind as a word, such as `folder-in-use`.
        public let rawValue: String

        /// Makes a kind of error from its word, known or not.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// Another process, or another object of this one, uses the folder.
        public static let folderInUse = Code(rawValue: "folder-in-use")
        /// The folder, or something in it, cannot be made, read or written.
        public static let folderUnusable = Code(rawValue: "folder-unusable")
        /// What the folder says of an upload cannot be read.
        public static let manifestUnreadable = Code(rawValue: "manifest-unreadable")
        /// The body of an upload is gone or has another length.
        public static let bodyMissing = Code(rawValue: "body-missing")
        /// There is no upload of that identity.
        public static let unknownUpload = Code(rawValue: "unknown-upload")
        /// The upload is under way or done, and cannot be begun anew.
        public static let notRestartable = Code(rawValue: "not-restartable")
        /// The upload was sent with secret header fields, which are not kept on disk and have to be given again.
        public static let headerFieldsNeeded = Code(rawValue: "header-fields-needed")
        /// Nobody knows how the upload ended.
        public static let lost = Code(rawValue: "lost")
        /// The object was closed.
        public static let closed = Code(rawValue: "closed")

        public var description: String { rawValue }
    }

    /// What kind of error it is.
    public let code: Code

    /// What happened, where, and what to do, in a sentence or two.
    public let message: String

    /// The file or folder that it has to do with.
    public let path: String?

    /// The upload that it has to do with.
    public let id: BackgroundUpload.ID?

    /// What the error was made from, where it comes from below.
    public let underlying: (any Error)?

    private init(
        _ code: Code, _ message: String, path: String? = nil, id: BackgroundUpload.ID? = nil,
        underlying: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.path = path
        self.id = id
        self.underlying = underlying
    }

    public var description: String { message }
}

extension BackgroundUploadError: LocalizedError {
    /// The same as ``message``.
    public var errorDescription: String? { message }
}

extension BackgroundUploadError {
    static func folderInUse(_ url: URL) -> BackgroundUploadError {
        BackgroundUploadError(
            .folderInUse,
            "The uploads in \(url.path) are in the hands of another process, or of another object of this one. "
                + "Make one object for each folder and keep it, or close the other.",
            path: url.path)
    }

    static func folder(_ url: URL, _ deed: String, _ error: any Error) -> BackgroundUploadError {
        BackgroundUploadError(
            .folderUnusable, "Cannot \(deed) \(url.path): \(error)", path: url.path, underlying: error)
    }

    static func manifest(_ url: URL, _ reason: String, underlying: (any Error)? = nil) -> BackgroundUploadError {
        BackgroundUploadError(
            .manifestUnreadable,
            "\(url.path) does not say what was uploaded: \(reason). The folder around it is left as it is; mend the "
                + "file, or remove the folder.",
            path: url.path, id: UUID(uuidString: url.deletingLastPathComponent().lastPathComponent),
            underlying: underlying)
    }

    static func bodyMissing(_ url: URL, of manifest: UploadManifest) -> BackgroundUploadError {
        BackgroundUploadError(
            .bodyMissing,
            "The form's \(manifest.bodyLength) bytes should lie at \(url.path) and do not. Add the form again.",
            path: url.path, id: manifest.id)
    }

    static func unknown(_ id: BackgroundUpload.ID) -> BackgroundUploadError {
        BackgroundUploadError(.unknownUpload, "There is no upload \(id); it may have been removed.", id: id)
    }

    static func notRestartable(_ id: BackgroundUpload.ID, _ reason: String) -> BackgroundUploadError {
        BackgroundUploadError(.notRestartable, "The upload \(id) cannot be begun anew: \(reason)", id: id)
    }

    static func headerFieldsNeeded(_ id: BackgroundUpload.ID, _ names: [String]) -> BackgroundUploadError {
        BackgroundUploadError(
            .headerFieldsNeeded,
            "The upload \(id) was sent with \(names.joined(separator: ", ")), which is not kept on disk. Give it "
                + "again to begin the upload anew.", id: id)
    }

    static func lost(_ id: BackgroundUpload.ID, mayHaveArrived: Bool) -> BackgroundUploadError {
        BackgroundUploadError(
            .lost,
            mayHaveArrived
                ? "The upload \(id) was under way when the program ended, and nobody knows how it went. It may have "
                    + "arrived; begun anew, it carries the same Idempotency-Key."
                : "The upload \(id) was not begun before the program ended. Begin it anew.",
            id: id)
    }

    static var closed: BackgroundUploadError {
        BackgroundUploadError(.closed, "The background uploads were closed. Make the object anew.")
    }
}
