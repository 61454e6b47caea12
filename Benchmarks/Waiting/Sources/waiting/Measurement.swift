import Foundation
import HTTPTypes
import PostcardClient
import PostcardQueue

/// What one process found.
struct Measurement: Codable {
    /// Until the queue was open.
    let opening: Duration
    /// From then on until running it came to its first upload.
    let starting: Duration
    /// What a screen reads.
    let listing: Duration
    let medianPick: Duration
    let worstPick: Duration
    /// The most memory of the process that opened the queue, listed it and sent a hundred uploads, three at a time.
    let peakBytes: Int

    /// How many uploads are done in a round.
    static let sent = 100
    private static let picks = 100

    /// Opens a queue, reads the beginning of its list, sends some uploads, and picks others one after the other.
    init(ofQueueIn directory: URL) async throws {
        let clock = ContinuousClock()
        let beginning = clock.now
        let queue = UploadQueue(directory: directory)
        try await queue.open()
        let opened = clock.now
        guard try await queue.uploads(limit: 1000).count == 1000 else { throw Failure("The queue is not full.") }
        let listed = clock.now
        let sendings = try await Self.questions(
            Self.sent + 1, of: queue, sendingBy: RespondingTransport(), concurrency: 3)
        peakBytes = try Self.readPeak()
        // Nothing else happens between these: the server never responds.
        let pickings = try await Self.questions(
            Self.picks + 1, of: queue, sendingBy: StandingTransport(), concurrency: Self.picks + 1)
        let picks = zip(pickings, pickings.dropFirst()).map { $0.duration(to: $1) }
        opening = beginning.duration(to: opened)
        listing = opened.duration(to: listed)
        starting = listed.duration(to: sendings[0])
        medianPick = median(picks)
        worstPick = picks.max() ?? .zero
    }

    /// Runs a queue until it has asked so often about the network, as it does each time before it picks.
    private static func questions(
        _ count: Int, of queue: UploadQueue, sendingBy transport: any UploadTransport, concurrency: Int
    ) async throws -> [ContinuousClock.Instant] {
        let (questions, asked) = AsyncStream.makeStream(of: ContinuousClock.Instant.self)
        let options = QueueOptions(
            maximumConcurrentUploads: concurrency, resumption: nil,
            networkPath: {
                asked.yield(.now)
                return NetworkPath()
            })
        let running = Task { try await queue.run(UploadClient(transport: transport), options: options) }
        var times: [ContinuousClock.Instant] = []
        for await time in questions {
            times.append(time)
            if times.count == count { break }
        }
        running.cancel()
        _ = await running.result
        return times
    }

    var cells: [String] {
        [opening, starting, listing, medianPick, worstPick].map(milliseconds) + [mebibytes(peakBytes)]
    }

    private static func readPeak() throws -> Int {
        #if os(Linux)
        // What getrusage says begins with the parent's.
        let lines = try String(contentsOfFile: "/proc/self/status", encoding: .utf8).split(separator: "\n")
        let line = lines.first { $0.hasPrefix("VmHWM:") }
        guard let kibibytes = line?.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else {
            throw Failure("The system does not say how much memory a process took.")
        }
        return kibibytes << 10
        #else
        var usage = rusage()
        guard getrusage(RUSAGE_SELF, &usage) == 0 else {
            throw Failure("The system does not say how much memory a process took.")
        }
        return usage.ru_maxrss
        #endif
    }
}

/// A server that accepts everything at once.
private struct RespondingTransport: UploadTransport {
    func send(
        _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
    ) async throws -> UploadResponse {
        UploadResponse(status: .created, headerFields: HTTPFields(), body: Data())
    }
}

/// A connection on which nothing arrives: the picked uploads stay in progress.
private struct StandingTransport: UploadTransport {
    func send(
        _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
    ) async throws -> UploadResponse {
        try await Task.sleep(for: .seconds(3600))
        throw CancellationError()
    }
}
