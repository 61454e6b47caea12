import ArgumentParser
import Foundation
import HTTPTypes
import PostcardAsyncHTTP
import PostcardClient
import PostcardForm

struct Send: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Sends one multipart/form-data request.",
        discussion: """
            The form follows a 307 or 308 to where the server points, five times at most; behind a 303 the other place is \
            asked with GET, and credentials stay with the origin that they were given for. Any other redirect is a \
            refusal.

            The response's body goes to standard output. Exit status: 0 a 2xx answer; 1 the server answered otherwise, \
            answered before it had the whole form, or has not received what was sent (--verify); \
            64 usage; 66 a file is missing or unreadable; 69 no connection, or it broke; 75 timed out.
            """)

    /// Which HTTP client carries the request.
    enum Transport: String, ExpressibleByArgument, CaseIterable {
        case asyncHTTP = "async-http"
        case urlSession = "urlsession"

        func transport() -> any UploadTransport {
            switch self {
            case .asyncHTTP: AsyncHTTPTransport()
            case .urlSession: URLSessionTransport()
            }
        }
    }

    @Argument(help: "Where the form goes: an http or https URL.")
    var url: String

    @OptionGroup
    var options: FormOptions

    @Option(help: "No byte moved for this long ends the attempt.")
    var timeout = 60.0

    @Option(
        help: ArgumentHelp(
            "How long a whole answer may take, from the end of the form to the end of the answer.",
            discussion: "Defaults to five times --timeout.", valueName: "seconds"))
    var answerTimeout: Double?

    @Option(help: "How many more attempts after a failure that may pass.")
    var retries = 0

    @Flag(
        help: ArgumentHelp(
            "Go on where it stopped when the connection breaks.",
            discussion: """
                The server is asked whether it resumes uploads (draft-ietf-httpbis-resumable-upload); one that does not \
                gets an ordinary upload. Up to ten attempts in a row may bring the upload no further.
                """))
    var resumable = false

    @Option(
        help: ArgumentHelp(
            "The most bytes of the form that go out in a second, such as 500K.",
            discussion: "As curl has it, K, M and G are powers of 1024; kB, MB and GB are powers of 1000.",
            valueName: "rate"))
    var limitRate: ByteCount?

    @Flag(
        help: ArgumentHelp(
            "Compare what the receiver has with what was sent.",
            discussion: "The digests of files and the texts must be those of the record that postcard serve answers."))
    var verify = false

    @Flag(help: "Take a 2xx answer that comes before the whole form was sent for a success.")
    var acceptEarlyAnswer = false

    @Option(help: "Which HTTP client carries the request.")
    var transport = Transport.asyncHTTP

    @Flag(help: "Write the body to standard output and the head to standard error, and send nothing.")
    var dryRun = false

    @Flag(help: "Write one JSON object: status, headers, body, bytesSent, seconds, attempts.")
    var json = false

    func validate() throws {
        for timeout in [timeout, answerTimeout].compactMap(\.self)
        where !(0.001...31_536_000).contains(timeout) {
            throw ValidationError("The timeout must be from a thousandth of a second to a year.")
        }
        guard (0...10_000).contains(retries) else { throw ValidationError("The retries must be from 0 to 10,000.") }
        if let limitRate, limitRate.bytes < 1 {
            throw ValidationError("The rate must be at least one byte a second.")
        }
        _ = try address()
    }

    private func address() throws -> URL {
        guard let address = URL(string: url) else {
            throw ValidationError("'\(url)' is no URL. Write it as http://host/path.")
        }
        return address
    }

    func run() async throws {
        let address = try address()
        try await CommandFailure.reporting {
            let form = try options.multipartForm()
            if dryRun {
                try await DryRun(
                    form: form, url: address, method: try options.method(), headerFields: try options.headerFields()
                ).write()
            } else {
                try await send(form, to: address)
            }
        }
    }

    private func send(_ form: MultipartForm, to address: URL) async throws {
        let method = try options.method()
        let headerFields = try options.headerFields()
        let screen = Terminal.isInteractive ? ProgressScreen() : nil
        let start = ContinuousClock.now
        do {
            let response = try await client().upload(
                form, to: address, method: method, headerFields: headerFields, progress: screen.map { $0.show })
            screen?.finish()
            try write(response, attempts: response.attempts, since: start)
        } catch let error as UploadError {
            screen?.finish()
            if let response = error.response { try write(response, attempts: error.attempts, since: start) }
            throw error
        }
    }

    private func client() -> UploadClient {
        var client = UploadClient(
            transport: transport.transport(), retry: RetryPolicy(maximumAttempts: retries + 1),
            timeouts: UploadTimeouts(idle: .seconds(timeout)))
        if let answerTimeout { client.timeouts.response = .seconds(answerTimeout) }
        client.responses.acceptsEarly = acceptEarlyAnswer
        client.network.rateLimit = limitRate.map { RateLimit(bytesPerSecond: Int(clamping: $0.bytes)) }
        client.resumption = resumable ? ResumptionPolicy(minimumBytes: 0) : nil
        client.responses.verification = verify ? .record : nil
        return client
    }

    private func write(_ response: UploadResponse, attempts: Int, since start: ContinuousClock.Instant) throws {
        guard json else { return try Terminal.write(response.body) }
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        try Terminal.write(ResponseReport(response, attempts: attempts, seconds: seconds).json())
        try Terminal.writeLine("")
    }
}
