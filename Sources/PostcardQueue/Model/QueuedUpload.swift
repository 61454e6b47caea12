public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An upload in a queue, as it was when it was read.
public struct QueuedUpload: Sendable, Hashable, Identifiable {
    /// Identifies the upload in its queue. Identifiers grow and are never used again.
    public let id: Int64

    /// Where the form is sent.
    public let url: URL

    /// The request's method.
    public let method: HTTPRequest.Method

    /// What has become of the upload.
    public let state: State

    /// The form's parts, in order.
    public let parts: [Part]

    /// The number of bytes of the body that were sent in the current attempt, or in the last one.
    public internal(set) var bytesSent: Int64

    /// The number of bytes of the body.
    public let totalBytes: Int64

    /// The number of attempts that were begun.
    public let attempts: Int

    /// When the upload may be sent.
    public let conditions: UploadConditions

    /// When it was put into the queue.
    public let enqueued: Date

    /// The share of the body that was sent, from 0 to 1.
    public var fraction: Double {
        if case .done = state { return 1 }
        return totalBytes > 0 ? min(Double(bytesSent) / Double(totalBytes), 1) : 0
    }

    /// What has become of an upload.
    public enum State: Sendable, Hashable {
        /// It waits for its turn, or for its conditions.
        case waiting
        /// It is being sent, or was handed to the system to be sent.
        case sending
        /// An attempt failed for a reason that may pass; the next one begins at the given time.
        case retrying(at: Date, because: String)
        /// It was paused by ``UploadQueue/pause(_:)``.
        case paused
        /// The server accepted it.
        case done(Response)
        /// It failed. The queue keeps it until it is retried or cleared.
        case failed(because: String)
        /// It was cancelled. The queue keeps it until it is retried or cleared.
        case cancelled

        /// The state as one word, such as `waiting`.
        public var name: String { kind.rawValue }

        /// Whether nothing more happens to the upload by itself.
        public var isEnded: Bool {
            switch self {
            case .done, .failed, .cancelled: true
            case .waiting, .sending, .retrying, .paused: false
            }
        }

        var kind: Kind {
            switch self {
            case .waiting: .waiting
            case .sending: .sending
            case .retrying: .retrying
            case .paused: .paused
            case .done: .done
            case .failed: .failed
            case .cancelled: .cancelled
            }
        }

        /// The states as the database has them.
        enum Kind: String, CaseIterable {
            case waiting, sending, retrying, paused, done, failed, cancelled
        }
    }

    /// A part of a queued form.
    public struct Part: Sendable, Hashable {
        /// The name of the form's field.
        public let name: String
        /// The file's name, if the part is a file.
        public let filename: String?
        /// The part's media type, if it has one, such as `image/jpeg`.
        public let contentType: String?
        /// Where the part's content is in the body.
        public let content: Range<Int64>
    }

    /// The share of a part that was sent, from 0 to 1.
    public func fraction(of part: Part) -> Double {
        if case .done = state { return 1 }
        let length = part.content.upperBound - part.content.lowerBound
        let sent = min(max(bytesSent - part.content.lowerBound, 0), length)
        if length == 0 { return bytesSent >= part.content.upperBound && bytesSent > 0 ? 1 : 0 }
        return Double(sent) / Double(length)
    }

    /// What a server answered when it accepted a form.
    public struct Response: Sendable, Hashable {
        /// The status, such as 201.
        public let status: Int
        /// The response's `Content-Type`, if it has one.
        public let contentType: String?
        /// The response's body, or the first 64 KiB of a longer one.
        public let body: Data

        static let maximumBodyBytes = 64 << 10
    }
}
