import ArgumentParser
import Foundation
import HTTPTypes
import PostcardQueue

struct QueueList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists the uploads, one per line.")

    @OptionGroup
    var location: QueueLocation

    @Flag(help: "Write one JSON array: id, url, state, sent, total, attempts, error, response, notBefore.")
    var json = false

    func run() async throws {
        try await CommandFailure.reporting {
            let queue = try await location.open()
            let uploads = try await queue.uploads()
            if json {
                try Terminal.write(encoded: uploads.map(QueuedUploadReport.init))
            } else {
                for upload in uploads { try Terminal.writeLine(QueueLine.text(of: upload)) }
                if try await queue.isPaused {
                    Terminal.say(QueueLine.paused)
                }
            }
        }
    }
}

/// An upload of a queue, for the output of `list --json`.
private struct QueuedUploadReport: Encodable {
    let id: QueuedUpload.ID
    let url: String
    let state: String
    let sent: Int64
    let total: Int64
    let attempts: Int
    /// The reason why the latest attempt failed.
    let error: String?
    /// The server's latest response, if it accepted or refused the form; otherwise `nil`.
    let response: Response?
    /// The earliest time at which the upload may be sent, or the time of its next attempt.
    let notBefore: Date?

    struct Response: Encodable {
        let status: Int
        let headers: [String: String]
        let body: String
        /// Whether the body is in base64, because it is not text; absent if the body is text.
        let bodyIsBase64: Bool?

        init(_ response: QueuedUpload.Response) {
            status = response.status.code
            headers = response.headerFields.joinedByName
            let text = String(validating: response.body, as: UTF8.self)
            body = text ?? response.body.base64EncodedString()
            bodyIsBase64 = text == nil ? true : nil
        }
    }

    init(_ upload: QueuedUpload) {
        id = upload.id
        url = upload.url.absoluteString
        state = upload.state.name
        sent = upload.bytesSent
        total = upload.totalBytes
        attempts = upload.attempts
        notBefore = QueueLine.due(upload)
        switch upload.state {
        case .retrying(_, let failure), .failed(let failure):
            error = failure.message
            response = failure.response.map(Response.init)
        case .done(let accepted):
            error = nil
            response = Response(accepted)
        case .importing, .waiting, .waitingForNetwork, .sending, .paused, .cancelled: (error, response) = (nil, nil)
        }
    }

    enum CodingKeys: CodingKey {
        case id, url, state, sent, total, attempts, error, response, notBefore
    }

    /// Writes all members, even those that are `null`.
    func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(id, forKey: .id)
        try members.encode(url, forKey: .url)
        try members.encode(state, forKey: .state)
        try members.encode(sent, forKey: .sent)
        try members.encode(total, forKey: .total)
        try members.encode(attempts, forKey: .attempts)
        try members.encode(error, forKey: .error)
        try members.encode(response, forKey: .response)
        try members.encode(notBefore, forKey: .notBefore)
    }
}

/// Formats an upload of a queue as a line for `list` and `run`.
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
        case .done(let response): return line + "  \(response.status.code)"
        case .waiting: return line + (due(upload).map { "  not before \($0.formatted(.iso8601))" } ?? "")
        case .paused: return line + "  until it is resumed: postcard queue resume \(upload.id)"
        case .importing, .waitingForNetwork, .sending, .cancelled: return line
        }
    }

    /// The time that an upload waits for; `nil` if there is none.
    static func due(_ upload: QueuedUpload) -> Date? {
        switch upload.state {
        case .retrying(let due, _): due
        case .waiting: upload.conditions.notBefore.flatMap { $0 > Date() ? $0 : nil }
        case .importing, .waitingForNetwork, .sending, .paused, .done, .failed, .cancelled: nil
        }
    }
}
