import PostcardClient
import PostcardQueue

/// Prints a line for each upload that has ended, and acknowledges it. On a terminal at standard error, it also shows the
/// uploads in progress.
actor QueueEndings {
    private let queue: UploadQueue
    private var redrawn = RedrawnLines()
    private var meter = SpeedMeter()
    /// Whether one of them failed.
    private(set) var hasFailed = false

    init(_ queue: UploadQueue) {
        self.queue = queue
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
            try await printEnded()
            let lines = lines(for: uploads)
            if !lines.isEmpty { redrawn.draw(lines) }
        }
    }

    /// Prints what has ended since the last look.
    func finish() async throws {
        if Terminal.isInteractive { redrawn.clear() }
        try await printEnded()
    }

    /// Prints each upload once, also one that ended in a run that could not print it.
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

    /// A sum that cannot overflow: a damaged database may have any number.
    private static func sum(_ numbers: [Int64]) -> Int64 {
        numbers.reduce(0) { sum, number in
            let (total, isTooLarge) = sum.addingReportingOverflow(number)
            return isTooLarge ? .max : total
        }
    }
}
