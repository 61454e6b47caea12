import ArgumentParser
import PostcardClient
import PostcardForm
import PostcardQueue
import ServiceLifecycle
import UnixSignals

struct QueueRunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Sends what is in the queue.",
        discussion: """
            Prints a line for each upload that has ended and was not printed before. Runs until SIGTERM or SIGINT, and \
            then exits with 0. With --drain it ends when all that is left waits, says for what, and exits with 1 if an \
            upload failed or waits for its next attempt. Uploads that are being sent when it ends go back into the queue. \
            Only one process at a time can send from a queue: a second one exits with 75.
            """)

    @OptionGroup
    var location: QueueLocation

    @Option(help: "The maximum number of uploads at a time.")
    var concurrency = 3

    @Flag(
        help: ArgumentHelp(
            "End when all uploads that are left wait, such as for a date or for the next attempt.",
            discussion: "With --retries it waits for the next attempts, until all have been made."))
    var drain = false

    @Option(
        help: ArgumentHelp(
            "The maximum number of bytes to send per second, such as 500K, all uploads together.",
            discussion: """
                Defaults to no limit. As in curl, K, M and G are powers of 1024; kB, MB and GB are powers of 1000.
                """,
            valueName: "rate"))
    var limitRate: ByteCount?

    @Option(help: "How long an attempt may be idle, in seconds, before it fails.")
    var timeout = 60.0

    @Option(
        help:
            "The maximum number of attempts after the first, for failures that may pass. Defaults to \(Self.usualRetries)."
    )
    var retries: Int?

    private static let usualRetries = 1000

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
            throw ValidationError("--concurrency \(concurrency) must be from 1 to 1000.")
        }
        guard (0.001...31_536_000).contains(timeout) else {
            throw ValidationError("--timeout must be from a thousandth of a second to a year, such as 60.")
        }
        guard (0...31_536_000).contains(maxDelay) else {
            throw ValidationError("--max-delay must be from 0 seconds to a year, such as 1800.")
        }
        if let retries, !(0...1_000_000).contains(retries) {
            throw ValidationError("--retries \(retries) must be from 0 to 1000000.")
        }
        if let limitRate, limitRate.bytes < 1 {
            throw ValidationError("The rate must be at least one byte a second, such as 500K.")
        }
    }

    func run() async throws {
        try await CommandFailure.reporting {
            let queue = try await location.open()
            let endings = QueueEndings(queue)
            if drain, try await queue.isPaused { Terminal.say(QueueLine.paused) }
            try await withThrowingTaskGroup { group in
                defer { group.cancelAll() }
                let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
                group.addTask {
                    for await _ in signals { return }
                }
                group.addTask { try await endings.follow() }
                group.addTask { [self] in try await queue.run(try client(), options: queueOptions) }
                try await group.next()
            }
            try await endings.finish()
            guard drain else { return }
            let hasRetries = try await Self.sayWhatIsLeft(in: queue)
            if await endings.hasFailed || hasRetries { throw ExitStatus.refused }
        }
    }

    /// Reports the remaining uploads, and what they wait for. Returns whether one waits for its next attempt.
    private static func sayWhatIsLeft(in queue: UploadQueue) async throws -> Bool {
        let left = try await queue.uploads().filter { !$0.state.isEnded }
        let hasRetries = left.contains { if case .retrying = $0.state { true } else { false } }
        // Uploads that wait for a time are listed first. In a paused queue, all others wait for the queue.
        let dated = left.filter { QueueLine.due($0) != nil }
        let others = try await queue.isPaused ? [] : left.filter { QueueLine.due($0) == nil }
        for upload in (dated + others).prefix(maximumLines) { Terminal.say(QueueLine.text(of: upload)) }
        let count = dated.count + others.count - maximumLines
        if count > 0 { Terminal.say("\(count) more uploads wait. To see for what, run: postcard queue list") }
        return hasRetries
    }

    private static let maximumLines = 20

    private var queueOptions: QueueOptions {
        var policy = RetryPolicy(maximumAttempts: (retries ?? Self.usualRetries) + 1)
        policy.maximumDelay = .seconds(maxDelay)
        var options = QueueOptions(maximumConcurrentUploads: concurrency, retryPolicy: policy, endsWhenEmpty: drain)
        options.awaitsRetries = retries != nil
        return options
    }

    private func client() throws -> UploadClient {
        var client = UploadClient(
            transport: try connection.make(for: nil), timeouts: UploadTimeouts(idle: .seconds(timeout)))
        client.responses.acceptsEarly = acceptsEarlyResponse
        client.network.rateLimit = limitRate.map { RateLimit(bytesPerSecond: Int(clamping: $0.bytes)) }
        return client
    }
}

/// Prints and acknowledges each finished upload. On a terminal, also shows the uploads in progress.
actor QueueEndings {
    private let queue: UploadQueue
    private var redrawn = RedrawnLines()
    private var meter = SpeedMeter()
    private(set) var hasFailed = false

    init(_ queue: UploadQueue) {
        self.queue = queue
    }

    /// Prints finished uploads until the task is cancelled.
    func follow() async throws {
        guard Terminal.isInteractive else {
            while true {
                try await Task.sleep(for: .seconds(1))
                try await printEnded()
            }
        }
        for try await uploads in queue.updates() {
            try await printEnded()
            let lines = lines(for: uploads)
            if !lines.isEmpty { redrawn.draw(lines) }
        }
    }

    /// Prints the uploads that finished since the last check.
    func finish() async throws {
        if Terminal.isInteractive { redrawn.clear() }
        try await printEnded()
    }

    /// Prints each finished upload once, even those that an earlier run could not print.
    private func printEnded() async throws {
        var last: Int64 = 0
        while true {
            let (uploads, next) = try await queue.unacknowledged(after: last)
            if next == last { return }
            last = next
            if Terminal.isInteractive { redrawn.clear() }
            for upload in uploads {
                try Terminal.writeLine(QueueLine.text(of: upload))
                if case .failed = upload.state { hasFailed = true }
            }
            try await queue.acknowledge(uploads)
        }
    }

    private func lines(for uploads: [QueuedUpload]) -> [String] {
        let shown = uploads.filter { $0.state == .sending }
        let sent = Self.sum(uploads.map(\.bytesSent))
        meter.add(sent, at: .now)
        let ended = uploads.count { $0.state.isEnded }
        let lines = ProgressLines(
            files: shown.map { .init(label: "\($0.id)", sent: $0.bytesSent, total: $0.totalBytes) },
            whole: .init(
                label: "\(ended) of \(uploads.count)", sent: sent, total: Self.sum(uploads.map(\.totalBytes))),
            speed: meter.bytesPerSecond)
        let size = Terminal.size
        return lines.drawn(columns: size.columns, rows: size.rows)
    }

    /// Adds numbers without overflow, because a damaged database may contain any number.
    private static func sum(_ numbers: [Int64]) -> Int64 {
        numbers.reduce(0) { sum, number in
            let (total, isTooLarge) = sum.addingReportingOverflow(number)
            return isTooLarge ? .max : total
        }
    }
}
