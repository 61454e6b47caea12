public import Foundation

/// An upload of ``BackgroundUploads``, as it stood when it was asked for.
public struct BackgroundUpload: Sendable, Identifiable {
    /// By which it is found again, in this run of the program and in later ones.
    public let id: UUID

    /// Where it goes.
    public let url: URL

    /// The names of the form's files, in the order of its parts.
    public let filenames: [String]

    /// When it was added.
    public let added: Date

    /// The number of bytes of the form's body.
    public let totalBytes: Int64

    /// How often it was begun. What the system does on its own to get a body through is not counted.
    public let attempts: Int

    /// How it stands.
    public let state: State

    /// How an upload stands.
    public enum State: Sendable {
        /// It is about to be handed to the system.
        case waiting
        /// The system has it; so many of the body's bytes were sent.
        case sending(bytesSent: Int64)
        /// The server took it, with a status of 2xx.
        case done(UploadResponse)
        /// It failed. Where the server refused it, the error holds the answer.
        case failed(UploadError)
        /// It was begun, and neither the system nor the folder knows how it ended; or it never was begun, because
        /// the program ended first. ``BackgroundUploads/restart(_:headerFields:)`` begins it anew.
        case lost(mayHaveArrived: Bool)
        /// It was cancelled by ``BackgroundUploads/cancel(_:)``.
        case cancelled
    }

    /// The share of the body that was sent, from 0 to 1.
    public var fraction: Double {
        switch state {
        case .sending(let bytesSent): totalBytes > 0 ? min(Double(bytesSent) / Double(totalBytes), 1) : 0
        case .done: 1
        case .waiting, .failed, .lost, .cancelled: 0
        }
    }

    /// Whether nothing more happens to it by itself.
    public var isOver: Bool {
        switch state {
        case .waiting, .sending: false
        case .done, .failed, .lost, .cancelled: true
        }
    }
}
