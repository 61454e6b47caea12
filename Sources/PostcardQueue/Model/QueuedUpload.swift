#if Queue
public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An upload in a queue, as it stood when it was asked for.
public struct QueuedUpload: Sendable, Hashable, Identifiable {
    /// By which the queue knows it; grows with every upload and is never used again.
    public let id: Int64

    /// Where the form goes.
    public let url: URL

    /// The request's method.
    public let method: HTTPRequest.Method

    /// What becomes of it.
    public let state: State

    /// The number of the body's bytes that the connection has taken in the current attempt, or the last.
    public internal(set) var bytesSent: Int64

    /// The number of bytes of the body.
    public let totalBytes: Int64

    /// The number of attempts begun.
    public let attempts: Int

    /// What has to hold before it is sent.
    public let conditions: UploadConditions

    /// When it was put into the queue.
    public let enqueued: Date

    /// What becomes of an upload.
    public enum State: Sendable, Hashable {
        /// It waits for its turn, or for its conditions.
        case waiting
        /// It is on its way.
        case sending
        /// It failed for a reason that may pass, and is tried again.
        case retrying(at: Date, because: String)
        /// The server took it.
        case done(Response)
        /// It was given up; the queue holds it until it is retried or cleared.
        case failed(because: String)
        /// The program gave it up.
        case cancelled

        /// The state as one word, such as `waiting`.
        public var name: String { kind.rawValue }

        /// Whether nothing more happens of itself.
        public var isEnded: Bool {
            switch self {
            case .done, .failed, .cancelled: true
            case .waiting, .sending, .retrying: false
            }
        }

        var kind: Kind {
            switch self {
            case .waiting: .waiting
            case .sending: .sending
            case .retrying: .retrying
            case .done: .done
            case .failed: .failed
            case .cancelled: .cancelled
            }
        }

        /// The states by their names alone, as the database has them.
        enum Kind: String, CaseIterable {
            case waiting, sending, retrying, done, failed, cancelled
        }
    }

    /// What a server answered when it took a form.
    public struct Response: Sendable, Hashable {
        /// The status, such as 201.
        public let status: Int
        /// The response's `Content-Type`, where it has one.
        public let contentType: String?
        /// The response's body; of one that is longer than 64 KiB the beginning.
        public let body: Data
    }
}
#endif
