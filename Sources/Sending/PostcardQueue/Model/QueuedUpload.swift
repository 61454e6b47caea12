public import HTTPTypes
import PostcardForm
public import PostcardFoundation

/// The state of an upload in a queue at one time, as an immutable value.
public struct QueuedUpload: Sendable, Hashable, Identifiable {
    /// The upload's identifier in its queue. Identifiers increase and are never reused.
    public let id: Int64

    /// The URL that the form is sent to.
    public let url: URL

    /// The method of the request.
    public let method: HTTPRequest.Method

    /// The state of the upload.
    public internal(set) var state: State

    /// The form's parts, in order.
    public let parts: [Part]

    /// The number of the body's bytes sent in the current or latest attempt.
    public internal(set) var bytesSent: Int64

    /// The length of the body, in bytes.
    public let totalBytes: Int64

    /// The number of attempts so far, including the current one.
    public let attempts: Int

    /// The conditions and the order in which the upload may be sent.
    public let conditions: UploadConditions

    /// When the upload was enqueued.
    public let enqueued: Date

    /// The sequence number of the upload's end, until the app acknowledges the end; `nil` otherwise.
    var end: Int64?

    /// The tag as JSON, or `nil` if the upload has none.
    var tag: Data?

    /// Returns the app's tag for the upload, or `nil` if the upload has no tag.
    ///
    /// - Throws: `DecodingError` if the tag is of another type.
    public func tag<Tag: Decodable>(as type: Tag.Type) throws -> Tag? {
        try tag.map { try JSONDecoder().decode(type, from: $0) }
    }

    /// The fraction of the body that was sent, from 0 to 1.
    public var fraction: Double {
        if case .done = state { return 1 }
        return totalBytes > 0 ? min(Double(bytesSent) / Double(totalBytes), 1) : 0
    }

    /// The state of an upload.
    public enum State: Sendable, Hashable {
        /// A picked item is being copied, or will be copied. If copying has failed, the value is the failure, and
        /// copying is tried again while the queue runs.
        case importing(because: Failure?)
        /// The upload waits until it may be sent.
        case waiting
        /// The upload could be sent, but there is no allowed network. Only Apple platforms report this state.
        case waitingForNetwork
        /// The upload is being sent, or was handed to the system.
        case sending
        /// An attempt failed for a reason that may pass. The next attempt begins at the given time.
        case retrying(at: Date, because: Failure)
        /// The upload was paused with ``UploadQueue/pause(_:)``.
        case paused
        /// The server accepted the form.
        case done(Response)
        /// The upload failed. It stays in the queue until it is retried or cleared.
        case failed(because: Failure)
        /// The upload was cancelled. It stays in the queue until it is retried or cleared.
        case cancelled

        /// The name of the state, such as `waiting`.
        public var name: String { if case .waitingForNetwork = self { "waiting-for-network" } else { kind.rawValue } }

        /// Whether the upload has ended: it is done, failed or cancelled. A failed or cancelled upload can be retried.
        public var isEnded: Bool {
            switch self {
            case .done, .failed, .cancelled: true
            case .importing, .waiting, .waitingForNetwork, .sending, .retrying, .paused: false
            }
        }

        /// The state without its data.
        public var kind: Kind {
            switch self {
            case .importing: .importing
            case .waiting, .waitingForNetwork: .waiting
            case .sending: .sending
            case .retrying: .retrying
            case .paused: .paused
            case .done: .done
            case .failed: .failed
            case .cancelled: .cancelled
            }
        }

        /// The states without their data. ``QueuedUpload/State/waitingForNetwork`` has the kind `waiting`.
        public enum Kind: String, Sendable, CaseIterable {
            // The database stores these names.
            /// The picked item is being copied.
            case importing
            /// The upload waits until it may be sent, or for a network.
            case waiting
            /// The upload is being sent, or was handed to the system.
            case sending
            /// The upload waits for its next attempt.
            case retrying
            /// The upload is paused until it is resumed.
            case paused
            /// The server accepted the form.
            case done
            /// The upload failed. Only ``UploadQueue/retry(_:)`` sends it again.
            case failed
            /// The upload was cancelled.
            case cancelled
        }
    }

    /// A part of a queued form.
    public struct Part: Sendable, Hashable, Identifiable {
        /// The offset of the part's content in the body, which is different for every part of the form.
        public var id: Int64 { content.lowerBound }
        /// The part's name.
        public let name: String
        /// The filename, if the part is a file.
        public let filename: String?
        /// The media type, such as `image/jpeg`, if the part has one.
        public let contentType: String?
        /// The range of the part's content in the body, in bytes.
        public let content: Range<Int64>
    }

    /// The fraction of a part's content that was sent, from 0 to 1.
    public func fraction(of part: Part) -> Double {
        if case .done = state { return 1 }
        let length = part.content.upperBound - part.content.lowerBound
        let sent = min(max(bytesSent - part.content.lowerBound, 0), length)
        if length == 0 { return bytesSent >= part.content.upperBound && bytesSent > 0 ? 1 : 0 }
        return Double(sent) / Double(length)
    }

    /// A server's response to a form.
    public struct Response: Sendable, Hashable {
        /// The status, such as 201.
        public let status: HTTPResponse.Status
        /// The header fields, such as `Location`.
        public let headerFields: HTTPFields
        /// The body, at most its first 64 KiB.
        public let body: Data

        /// The `Content-Type`, if there is one.
        public var contentType: String? { headerFields[.contentType] }

        static let maximumBodyBytes = 64 << 10

        /// Makes a response, for previews and tests.
        public init(status: HTTPResponse.Status, headerFields: HTTPFields = HTTPFields(), body: Data = Data()) {
            self.status = status
            self.headerFields = headerFields
            self.body = body
        }
    }
}

extension Set<QueuedUpload.State.Kind> {
    /// The states of uploads that have ended: done, failed and cancelled.
    public static var ended: Set<QueuedUpload.State.Kind> { [.done, .failed, .cancelled] }
}

extension QueuedUpload {
    /// Makes an upload that is in no queue, for a preview of a row or for a test.
    ///
    /// ```swift
    /// #Preview { Row(upload: .preview(.sending, fraction: 0.4)) }
    /// #Preview { Row(upload: .preview(.failed(because: .init(.refused, "The server refused the form.")))) }
    /// ```
    ///
    /// - Parameters:
    ///   - state: The state of the upload.
    ///   - fraction: The fraction of the body sent, from 0 to 1.
    ///   - id: The identifier, which must be different for each upload of a list.
    ///   - filenames: The names of the form's files, each a part of 1 MB. Defaults to one photo.
    ///   - url: The URL that the form is sent to.
    ///   - conditions: The conditions and the order in which the upload may be sent.
    ///   - enqueued: When the upload was enqueued. Defaults to now.
    public static func preview(
        _ state: State = .sending, fraction: Double = 0, id: ID = 1, filenames: [String] = ["photo.jpg"],
        url: URL = URL(filePath: "/"), conditions: UploadConditions = UploadConditions(), enqueued: Date = Date()
    ) -> QueuedUpload {
        let size: Int64 = 1_000_000
        let totalBytes = size * Int64(filenames.count)
        return QueuedUpload(
            id: id, url: url, method: .post, state: state,
            parts: filenames.enumerated().map { index, filename in
                Part(
                    name: "file", filename: filename, contentType: MediaType.forExtension(of: filename)?.value,
                    content: size * Int64(index)..<size * Int64(index + 1))
            },
            bytesSent: Int64(Double(totalBytes) * min(max(fraction, 0), 1)), totalBytes: totalBytes, attempts: 1,
            conditions: conditions, enqueued: enqueued)
    }
}

/// How long uploads that are done stay in the queue's list.
///
/// The form of an upload is removed when the upload is done. Its entry in the list, with the server's response, stays
/// until the app has acknowledged the upload (see ``UploadQueue/outcomes``), and after that within these limits.
/// ``UploadQueue/doneCount`` also counts the uploads that are no longer listed.
public struct UploadRetention: Sendable, Hashable {
    /// The maximum number of acknowledged uploads in the list, the latest ones. Defaults to 100; `nil` means no limit.
    public var maximumCount: Int?

    /// How long an upload is listed after it was done. Defaults to 30 days; `nil` means no limit.
    public var maximumAge: Duration?

    /// No limits: every upload is listed until ``UploadQueue/clear(_:with:)``.
    public static let all = UploadRetention(maximumCount: nil, maximumAge: nil)

    /// Makes limits for the list. Defaults to the latest 100 uploads for 30 days.
    public init(maximumCount: Int? = 100, maximumAge: Duration? = .seconds(2_592_000)) {
        self.maximumCount = maximumCount.map { max($0, 0) }
        self.maximumAge = maximumAge
    }
}
