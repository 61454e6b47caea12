import ArgumentParser
import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import SystemPackage

struct Send: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Sends one multipart/form-data request.",
        discussion: """
            Examples:
              postcard send http://127.0.0.1:8080/uploads -F name=초코 -F photo=@cat.jpg
              postcard send https://example.com/pets -F photo=@cat.jpg --retries 3
              postcard send https://example.com/films -F film=@film.mov --resumable
              postcard send https://example.com/pets -F photo=@cat.heic --fit 1MB

            The response's body is written to standard output. A 307 or 308 redirect sends the form to the new URL, up \
            to five times. A 303 redirect requests the new URL with GET. Credentials are sent only to their own origin. \
            Any other redirect is a refusal.

            Exit status:
              0   a 2xx response
              1   another response, a response before the whole form was sent, or
                  the server received something else (--verify)
              64  usage, or a --config file that cannot be used
              66  a file or a picture library is missing or unreadable, or a
                  picture cannot be made to fit
              69  no connection, or it broke, or the response is too large
              70  this build or machine lacks what the options need
              73  a file or standard output cannot be written
              75  timed out
            """)

    @OptionGroup
    var target: FormTarget

    @OptionGroup(title: "The form and its request")
    var options: FormOptions

    @Option(help: "How long an attempt may be idle, in seconds.")
    var timeout = 60.0

    @Option(
        name: .customLong("answer-timeout"),
        help: ArgumentHelp(
            "How long the whole response may take, from the end of the form to the end of the response.",
            discussion: "Defaults to five times --timeout.", valueName: "seconds"))
    var responseTimeout: Double?

    @Option(
        name: [.customShort("m"), .customLong("max-time")],
        help: ArgumentHelp(
            "How long the whole upload may take with all its attempts, in seconds.",
            discussion: "Defaults to no limit.", valueName: "seconds"))
    var totalTime: Double?

    @Option(
        name: [.long, .customLong("retry")], parsing: .unconditional,
        help: "How many more attempts after a temporary failure.")
    var retries = 0

    @Flag(
        name: [.short, .long],
        help: "Draw no progress, and say nothing of failures after which the form is sent again.")
    var silent = false

    @Flag(
        help: ArgumentHelp(
            "Resume the upload when the connection breaks.",
            discussion: """
                If the server does not support resumable uploads (draft-ietf-httpbis-resumable-upload), the upload is \
                an ordinary one. It fails after ten attempts in a row without progress.
                """))
    var resumable = false

    @Option(
        help: ArgumentHelp(
            "The maximum number of bytes to send per second, such as 500K.",
            discussion:
                "Defaults to no limit. As in curl, K, M and G are powers of 1024; kB, MB and GB are powers of 1000.",
            valueName: "rate"))
    var limitRate: ByteCount?

    @Flag(
        help: ArgumentHelp(
            "Compare what the receiver has with what was sent.",
            discussion: "The digests of files and the texts must equal those in the record that postcard serve "
                + "returns."))
    var verify = false

    @Flag(
        help: ArgumentHelp(
            "Send SHA-256 digests (RFC 9530), so that bytes that change in transit are refused.",
            discussion:
                "With --resumable or --retries such bytes are sent again. The form is read once before it is sent. "
                + "With --json, \"verified\" says whether the receiver has reported the same digest."))
    var digests = false

    @Flag(
        name: .customLong("accept-early-answer"),
        help: "Accept a 2xx response that arrives before the whole form was sent.")
    var acceptsEarlyResponse = false

    @OptionGroup(title: "Connection")
    var connection: TransportOptions

    @Flag(help: "Write the request to standard output, as 'postcard explain' reads it, and send nothing.")
    var dryRun = false

    @Flag(
        help: ArgumentHelp(
            "Write the command line of curl that sends the same form, and send nothing.",
            discussion: "It is quoted for sh. What curl cannot do is listed on standard error."))
    var asCurl = false

    @Flag(
        help: ArgumentHelp(
            "Write one JSON object: status, headers, body, bytesSent, seconds, attempts, verified.",
            discussion: """
                After a failure it has an error with code, message, advice and delivery, and the response if there was \
                one. A body that is not text is in base64, and bodyIsBase64 is true.
                """))
    var json = false

    func validate() throws {
        for timeout in [timeout, responseTimeout, totalTime].compactMap(\.self)
        where !(0.001...31_536_000).contains(timeout) {
            throw ValidationError("The timeout must be from a thousandth of a second to a year.")
        }
        guard (0...10_000).contains(retries) else { throw ValidationError("The retries must be from 0 to 10,000.") }
        if let limitRate, limitRate.bytes < 1 {
            throw ValidationError("The rate must be at least one byte a second.")
        }
        if dryRun, asCurl {
            throw ValidationError("--dry-run writes the request and --as-curl a command line: choose one of them.")
        }
        if dryRun, json {
            throw ValidationError("--dry-run sends nothing, so there is no response for --json to write.")
        }
        _ = try address()
    }

    private func address() throws -> URL {
        guard let address = URL(string: target.text) else {
            throw ValidationError("'\(target.text)' is not a URL. Write it as http://host/path.")
        }
        return address
    }

    func run() async throws {
        let address = try address()
        let start = ContinuousClock.now
        try await CommandFailure.reporting {
            options.sayWhatIsIgnored()
            if asCurl { return try CurlLine(self).write() }
            if dryRun { return try await writeBody(for: address) }
            let response: UploadResponse
            do {
                let form = try options.multipartForm()
                response = try await Interruption.ending(ifNeeded: form.needsPreparation) {
                    try await send(form, to: address)
                }
            } catch  where json {
                try Terminal.write(json: SendReport(error, after: .now - start).json())
                throw error
            }
            guard json else { return try ShownResponse(response).write() }
            try Terminal.write(json: SendReport(response, after: .now - start).json())
        }
    }

    private func writeBody(for address: URL) async throws {
        let form = try options.multipartForm()
        let (method, headerFields) = (try options.method(), try options.headerFields())
        try await Interruption.ending(ifNeeded: form.needsPreparation) {
            try await form.withPreparedParts { form in
                try await DryRun(form: form, url: address, method: method, headerFields: headerFields).write()
            }
        }
    }

    private func send(_ form: MultipartForm, to address: URL) async throws -> UploadResponse {
        let screen = Terminal.isInteractive && !silent ? ProgressScreen() : nil
        do {
            let events = try client().events(
                of: form, to: address, method: options.method(), headerFields: options.headerFields())
            for try await event in events {
                screen?.show(event)
                switch event {
                case .retrying(let retry): if !silent { say(retry, above: screen) }
                case .done(let response): return response
                default: break
                }
            }
            throw CancellationError()
        } catch let error as UploadError {
            screen?.finish()
            var error = options.fitsServer && error.namesNoLimit ? error.adding(Self.noLimit) : error
            if error.response?.status == .lengthRequired { error = error.adding(Self.noLength) }
            guard let response = error.response, !json else { throw error }
            let shown = ShownResponse(response)
            try shown.write()
            // On the same terminal, the response has already shown the reason.
            throw shown.isRead ? CommandFailure(besidesResponse: error) : CommandFailure(error)
        }
    }

    private static let noLength =
        "Standard input and pipes have no length: write what they give to a file, or send it as a text, with name=<-."
    private static let noLimit = "It reported no limit that pictures could be made to fit: try --fit 900KB."

    /// Reports the time and reason of the next attempt.
    private func say(_ retry: UploadRetry, above screen: ProgressScreen?) {
        // Resumed uploads have no fixed number of attempts, because those with progress do not count.
        let count = resumable ? "" : " of \(retries + 1)"
        let seconds = retry.delay / .seconds(1)
        let delay = seconds < 10 ? String(format: "%.1f", seconds) : "\(Int(seconds.rounded()))"
        let line = "postcard: attempt \(retry.nextAttempt)\(count) in \(delay) s: \(retry.error.message)"
        if let screen { screen.say(line) } else { Terminal.say(line) }
    }

    private func client() throws -> UploadClient {
        var client = UploadClient(
            transport: try connection.make(for: URL(string: target.text)),
            retryPolicy: RetryPolicy(maximumAttempts: retries + 1),
            timeouts: UploadTimeouts(idle: .seconds(timeout)))
        client.timeouts.total = totalTime.map { .seconds($0) }
        if let responseTimeout { client.timeouts.response = .seconds(responseTimeout) }
        client.responses.acceptsEarly = acceptsEarlyResponse
        client.network.rateLimit = limitRate.map { RateLimit(bytesPerSecond: Int(clamping: $0.bytes)) }
        client.resumption = resumable ? ResumptionPolicy(minimumBytes: 0) : nil
        client.responses.sendsDigests = digests
        client.responses.verification = verify ? .record : nil
        client.network.asksForLimits = true
        return client
    }
}

/// Writes the request to standard output instead of sending it, in the format that `explain` reads.
struct DryRun {
    let form: MultipartForm
    let url: URL
    let method: HTTPRequest.Method
    let headerFields: HTTPFields

    func write() async throws {
        let layout = try form.layout()
        let request = try UploadRequest(
            url: url, method: method, headerFields: headerFields, body: UploadBody(layout), maximumResponseBytes: 0)
        let head = Self.head(of: request)
        if Terminal.isOutputInteractive { return try await show(head, layout) }
        do {
            try FileDescriptor.standardOutput.writeAll(head.utf8)
            if layout.contentLength == nil { return try await Self.writeChunks(of: layout) }
            try await layout.write(to: .standardOutput)
        } catch let error as Errno {
            throw CommandFailure.output(error)
        }
    }

    /// Writes a body of unknown length in chunks, as it would be sent (RFC 9112 §7.1).
    private static func writeChunks(of layout: FormLayout) async throws {
        for try await chunk in layout.chunks() where !chunk.isEmpty {
            try FileDescriptor.standardOutput.writeAll(
                Data("\(String(chunk.count, radix: 16))\r\n".utf8) + chunk + Data("\r\n".utf8))
        }
        try FileDescriptor.standardOutput.writeAll("0\r\n\r\n".utf8)
    }

    /// Shows a short text on a terminal. Other bodies are refused, because they belong in a file or pipe.
    private func show(_ head: String, _ layout: FormLayout) async throws {
        let longest: Int64 = 64 << 10
        if let length = layout.contentLength, length <= longest {
            let body = try await layout.data()
            if String(validating: body, as: UTF8.self) != nil, !body.contains(0) {
                return try Terminal.write(foreign: Data(head.utf8) + body)
            }
        }
        try Terminal.write(foreign: head.utf8)
        let size = layout.contentLength.map { "The body of \($0) bytes" } ?? "The body"
        Terminal.say("\(size) is not for a terminal. To write the request to a file, add: > request")
    }

    private static func head(of request: UploadRequest) -> String {
        let components = URLComponents(url: request.url, resolvingAgainstBaseURL: false)
        let path = components?.percentEncodedPath ?? ""
        let query = components?.percentEncodedQuery.map { "?\($0)" } ?? ""
        let port = request.url.port.map { ":\($0)" } ?? ""
        var lines = ["\(request.method.rawValue) \(path.isEmpty ? "/" : path)\(query) HTTP/1.1"]
        // A given `Host` replaces that of the URL.
        if !request.headerFields.contains(where: { $0.name.canonicalName == "host" }) {
            lines.append("Host: \(components?.percentEncodedHost ?? "")\(port)")
        }
        lines += request.headerFields.map { "\($0.name.rawName): \($0.value)" }
        if let body = request.body {
            lines.append(body.contentLength.map { "Content-Length: \($0)" } ?? "Transfer-Encoding: chunked")
        }
        return lines.map { $0 + "\r\n" }.joined() + "\r\n"
    }
}
