import ArgumentParser
import PostcardAsyncHTTP
import PostcardClient
import PostcardQueue
import ServiceLifecycle
import UnixSignals

struct QueueRunner: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Sends what is in the queue.",
        discussion: """
            It goes on until it is told to end by SIGTERM or SIGINT, or, with --drain, until nothing is left that can be \
            done; then it exits 0. Uploads that were on their way go back into the queue. One process sends from a queue \
            at a time: a second one exits with 75.
            """)

    @OptionGroup
    var location: QueueLocation

    @Option(help: "The most uploads on their way at a time.")
    var concurrency = 3

    @Flag(help: "End when nothing is left to do.")
    var drain = false

    @Option(help: "No byte moved for this long ends an attempt.")
    var timeout = 60.0

    @Option(help: "How many more attempts after a failure that may pass.")
    var retries = 1000

    @Option(help: "The longest wait between two attempts, in seconds.")
    var maxDelay = 1800.0

    @Flag(help: "Take a 2xx answer that comes before the whole form was sent for a success.")
    var acceptEarlyAnswer = false

    @Option(help: "Which HTTP client carries the requests.")
    var transport = Send.Transport.asyncHTTP

    func validate() throws {
        guard (1...1000).contains(concurrency) else {
            throw ValidationError("The concurrency must be from 1 to 1,000.")
        }
        guard (0.001...31_536_000).contains(timeout), (0...31_536_000).contains(maxDelay) else {
            throw ValidationError("The timeout and the longest wait must be at most a year.")
        }
        guard (0...1_000_000).contains(retries) else {
            throw ValidationError("The retries must be from 0 to 1,000,000.")
        }
    }

    func run() async throws {
        try await CommandFailure.reporting {
            let queue = try location.open()
            try await withThrowingTaskGroup { group in
                defer { group.cancelAll() }
                let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
                group.addTask {
                    for await _ in signals { return }
                }
                if Terminal.isInteractive { group.addTask { try await QueueScreen(queue).follow() } }
                group.addTask { [self] in try await queue.run(client(), options: queueOptions) }
                try await group.next()
            }
        }
    }

    private var queueOptions: QueueOptions {
        QueueOptions(
            concurrency: concurrency,
            retryPolicy: RetryPolicy(maximumAttempts: retries + 1, maximumDelay: .seconds(maxDelay)),
            endsWhenEmpty: drain)
    }

    private func client() -> UploadClient {
        var client = UploadClient(transport: transport.transport(), timeouts: UploadTimeouts(idle: .seconds(timeout)))
        client.responses.acceptsEarly = acceptEarlyAnswer
        return client
    }
}
