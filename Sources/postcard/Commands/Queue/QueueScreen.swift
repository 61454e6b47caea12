import PostcardClient
import PostcardQueue

/// Keeps a line for each upload that is on its way on the terminal at standard error.
struct QueueScreen {
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

    /// A sum that cannot overflow, because the queue's database may say anything.
    private static func sum(_ numbers: [Int64]) -> Int64 {
        numbers.reduce(0) { sum, number in
            let (total, isTooLarge) = sum.addingReportingOverflow(number)
            return isTooLarge ? .max : total
        }
    }
}
