import ArgumentParser
import PostcardClient
import PostcardQueue
import ServiceLifecycle
import UnixSignals

struct QueueRun: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Sends what is in the queue.",
        discussion: """
            Runs until SIGTERM or SIGINT, or with --drain until no upload is left that can be sent, and then exits with 0. \
            Uploads that are being sent when it ends go back into the queue. Only one process at a time can send from a \
            queue: a second one exits with 75.
            """)

    @OptionGroup
    var location: QueueLocation

    @Option(help: "The maximum number of uploads at a time.")
    var concurrency = 3

    @Flag(help: "End when no upload is left that can be sent.")
    var drain = false

    @Option(help: "How long an attempt may be idle, in seconds, before it fails.")
    var timeout = 60.0

    @Option(help: "The maximum number of attempts after the first, for failures that may pass.")
    var retries = 1000

    @Option(help: "The maximum delay between two attempts, in seconds.")
    var maxDelay = 1800.0

    @Flag(
        name: .customLong("accept-early-answer"),
        help: "Accept a 2xx response that arrives before the whole form was sent.")
    var acceptsEarlyResponse = false

    @OptionGroup(title: "Connection")
    var connection: TransportOptions

    func validate() throws {
        guard (1...1000).contains(concurrency) else {
            throw ValidationError("The concurrency must be from 1 to 1,000.")
        }
        guard (0.001...31_536_000).contains(timeout), (0...31_536_000).contains(maxDelay) else {
            throw ValidationError("The timeout and the maximum delay must be at most a year.")
        }
        guard (0...1_000_000).contains(retries) else {
            throw ValidationError("The retries must be from 0 to 1,000,000.")
        }
    }

    func run() async throws {
        try await CommandFailure.reporting {
            let queue = try await location.open()
            try await withThrowingTaskGroup { group in
                defer { group.cancelAll() }
                let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
                group.addTask {
                    for await _ in signals { return }
                }
                if Terminal.isInteractive { group.addTask { try await QueueScreen(queue).follow() } }
                group.addTask { [self] in try await queue.run(try client(), options: queueOptions) }
                try await group.next()
            }
        }
    }

    private var queueOptions: QueueOptions {
        var policy = RetryPolicy(maximumAttempts: retries + 1)
        policy.maximumDelay = .seconds(maxDelay)
        return QueueOptions(concurrency: concurrency, retryPolicy: policy, endsWhenEmpty: drain)
    }

    private func client() throws -> UploadClient {
        var client = UploadClient(
            transport: try connection.make(for: nil), timeouts: UploadTimeouts(idle: .seconds(timeout)))
        client.responses.acceptsEarly = acceptsEarlyResponse
        return client
    }
}

/// Shows a line for each upload in progress, on a terminal at standard error.
private struct QueueScreen {
    private let queue: UploadQueue

    init(_ queue: UploadQueue) {
        self.queue = queue
    }

    /// Draws until the task is cancelled.
    func follow() async throws {
        var redrawn = RedrawnLines()
        var meter = SpeedMeter()
        for try await uploads in queue.updates() {
            let shown = uploads.filter { $0.state == .sending }
            let sent = Self.sum(uploads.map(\.bytesSent))
            meter.add(sent, at: .now)
            let ended = uploads.count { $0.state.isEnded }
            let lines = ProgressLines(
                files: shown.map { .init(label: "\($0.id)", sent: $0.bytesSent, total: $0.totalBytes) },
                whole: .init(
                    label: "\(ended) of \(uploads.count)", sent: sent,
                    total: Self.sum(uploads.map(\.totalBytes))), speed: meter.bytesPerSecond)
            let size = Terminal.size
            redrawn.draw(lines.drawn(columns: size.columns, rows: size.rows))
        }
    }

    /// A sum that cannot overflow: a damaged database may have any number.
    private static func sum(_ numbers: [Int64]) -> Int64 {
        numbers.reduce(0) { sum, number in
            let (total, isTooLarge) = sum.addingReportingOverflow(number)
            return isTooLarge ? .max : total
        }
    }
}
