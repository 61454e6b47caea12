import PostcardClient
import PostcardQueue

/// Prints a line for each upload that ends while the queue runs. On a terminal at standard error, it also shows the
/// uploads in progress.
actor QueueEndings {
    private let queue: UploadQueue
    /// The uploads that have ended and were printed, or had ended before, with their numbers of attempts: an upload
    /// that is retried ends again.
    private var ended: [QueuedUpload.ID: Int]
    /// Everything up to this upload had ended at the last look. What is retried since is printed at the end.
    private var start: QueuedUpload.ID = 0
    private var redrawn = RedrawnLines()
    private var meter = SpeedMeter()
    /// Whether one of them failed.
    private(set) var hasFailed = false

    /// - Parameter uploads: The uploads before the run.
    init(_ queue: UploadQueue, already uploads: [QueuedUpload]) {
        self.queue = queue
        ended = Self.attempts(of: uploads.filter(\.state.isEnded))
    }

    /// Prints until the task is cancelled.
    func follow() async throws {
        guard Terminal.isInteractive else {
            while true {
                try await Task.sleep(for: .seconds(1))
                try await printEnded()
            }
        }
        for try await uploads in queue.updates() {
            try show(uploads, and: lines(for: uploads))
        }
    }

    /// Prints what has ended since the last look.
    func finish() async throws {
        if Terminal.isInteractive { redrawn.clear() }
        start = 0
        try await printEnded()
    }

    private static func attempts(of uploads: [QueuedUpload]) -> [QueuedUpload.ID: Int] {
        Dictionary(uploads.map { ($0.id, $0.attempts) }, uniquingKeysWith: { $1 })
    }

    private func printEnded() async throws {
        try show(try await queue.uploads(after: start), and: [])
    }

    private func show(_ uploads: [QueuedUpload], and lines: [String]) throws {
        let new = uploads.filter { $0.state.isEnded && ended[$0.id] != $0.attempts }
        if !new.isEmpty, Terminal.isInteractive { redrawn.clear() }
        for upload in new {
            try Terminal.writeLine(QueueLine.text(of: upload))
            if case .failed = upload.state { hasFailed = true }
        }
        ended.merge(Self.attempts(of: new)) { $1 }
        start = uploads.first { !$0.state.isEnded }.map { $0.id &- 1 } ?? start
        if !lines.isEmpty { redrawn.draw(lines) }
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

    /// A sum that cannot overflow: a damaged database may have any number.
    private static func sum(_ numbers: [Int64]) -> Int64 {
        numbers.reduce(0) { sum, number in
            let (total, isTooLarge) = sum.addingReportingOverflow(number)
            return isTooLarge ? .max : total
        }
    }
}
