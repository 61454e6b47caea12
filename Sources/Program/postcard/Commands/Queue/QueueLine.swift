import Foundation
import PostcardQueue

/// An upload of a queue as a line, for `list` and `run`.
enum QueueLine {
    static let paused = "The queue is paused. To resume it, run: postcard queue resume"

    static func text(of upload: QueuedUpload) -> String {
        let state = upload.state.name.padding(toLength: 9, withPad: " ", startingAt: 0)
        let sizes = "\(ProgressLines.size(upload.bytesSent)) of \(ProgressLines.size(upload.totalBytes))"
        let line = "\(upload.id)  \(state)  \(sizes)  \(upload.url.absoluteString)"
        switch upload.state {
        case .retrying(let due, let failure):
            return line + "  next attempt at \(due.formatted(.iso8601)): \(Terminal.printable(failure.message))"
        case .failed(let failure): return line + "  \(Terminal.printable(failure.message))"
        case .done(let response): return line + "  \(response.status)"
        case .waiting: return line + (due(upload).map { "  not before \($0.formatted(.iso8601))" } ?? "")
        case .paused: return line + "  until it is resumed: postcard queue resume \(upload.id)"
        case .importing, .waitingForNetwork, .sending, .cancelled: return line
        }
    }

    /// When an upload that waits for a time may be sent; `nil` for the others.
    static func due(_ upload: QueuedUpload) -> Date? {
        switch upload.state {
        case .retrying(let due, _): due
        case .waiting: upload.conditions.notBefore.flatMap { $0 > Date() ? $0 : nil }
        case .importing, .waitingForNetwork, .sending, .paused, .done, .failed, .cancelled: nil
        }
    }
}
