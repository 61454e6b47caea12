import ArgumentParser
import Foundation
import PostcardQueue

struct QueueList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists the uploads, one per line.")

    @OptionGroup
    var location: QueueLocation

    @Flag(help: "Write one JSON array: id, url, state, sent, total, attempts, error, response.")
    var json = false

    func run() async throws {
        try await CommandFailure.reporting {
            let queue = try await location.open()
            let uploads = try await queue.uploads()
            if json {
                let encoder = JSONEncoder()
                encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
                try Terminal.write(json: try encoder.encode(uploads.map(QueuedUploadReport.init)))
            } else {
                for upload in uploads { try Terminal.writeLine(Self.line(for: upload)) }
                if try await queue.isPaused {
                    Terminal.say("The queue is paused. To resume it, run: postcard queue resume")
                }
            }
        }
    }

    private static func line(for upload: QueuedUpload) -> String {
        let state = upload.state.name.padding(toLength: 9, withPad: " ", startingAt: 0)
        let sizes = "\(ProgressLines.size(upload.bytesSent)) of \(ProgressLines.size(upload.totalBytes))"
        let line = "\(upload.id)  \(state)  \(sizes)  \(upload.url.absoluteString)"
        switch upload.state {
        case .retrying(let due, let failure):
            return line + "  next attempt at \(due.formatted(.iso8601)): \(Terminal.printable(failure.message))"
        case .failed(let failure): return line + "  \(Terminal.printable(failure.message))"
        case .done(let response): return line + "  \(response.status)"
        case .waiting, .waitingForNetwork, .sending, .paused, .cancelled: return line
        }
    }
}

/// An upload of a queue as `list --json` writes it.
private struct QueuedUploadReport: Encodable {
    let id: QueuedUpload.ID
    let url: String
    let state: String
    let sent: Int64
    let total: Int64
    let attempts: Int
    /// Why the latest attempt failed.
    let error: String?
    /// The server's latest response, if it accepted or refused the form.
    let response: Response?

    struct Response: Encodable {
        let status: Int
        let body: String

        init(_ response: QueuedUpload.Response) {
            status = response.status
            body = String(decoding: response.body, as: UTF8.self)
        }
    }

    init(_ upload: QueuedUpload) {
        id = upload.id
        url = upload.url.absoluteString
        state = upload.state.name
        sent = upload.bytesSent
        total = upload.totalBytes
        attempts = upload.attempts
        switch upload.state {
        case .retrying(_, let failure), .failed(let failure):
            error = failure.message
            response = failure.response.map(Response.init)
        case .done(let accepted):
            error = nil
            response = Response(accepted)
        case .waiting, .waitingForNetwork, .sending, .paused, .cancelled: (error, response) = (nil, nil)
        }
    }

    enum CodingKeys: CodingKey {
        case id, url, state, sent, total, attempts, error, response
    }

    /// Writes all members, also those that are `null`.
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
    }
}
