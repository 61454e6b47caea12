import PostcardClient
import Synchronization

/// Keeps the bars of an upload up to date on the terminal at standard error.
final class ProgressScreen: Sendable {
    private let state = Mutex(State())

    private struct State {
        var latest: UploadProgress?
        var lastDrawn: ContinuousClock.Instant?
        var lines = RedrawnLines()
    }

    /// A screen is redrawn this often: more is not seen.
    private static let interval = Duration.milliseconds(80)

    /// Shows how far the upload is.
    func show(_ progress: UploadProgress) {
        state.withLock { state in
            let now = ContinuousClock.now
            state.latest = progress
            if let lastDrawn = state.lastDrawn, now - lastDrawn < Self.interval { return }
            state.lastDrawn = now
            Self.draw(&state)
        }
    }

    /// Shows for good how far the upload came.
    func finish() {
        state.withLock { Self.draw(&$0) }
    }

    private static func draw(_ state: inout State) {
        guard let progress = state.latest else { return }
        let lines = ProgressLines(progress, speed: progress.bytesPerSecond)
        let size = Terminal.size
        state.lines.draw(lines.drawn(columns: size.columns, rows: size.rows))
    }
}

extension ProgressLines {
    fileprivate init(_ progress: UploadProgress, speed: Double?) {
        files = progress.parts.filter { $0.filename != nil }.map { part in
            Item(
                label: Terminal.printable(part.filename ?? part.name).replacing("\n", with: "\u{FFFD}"),
                sent: part.bytesSent, total: part.totalBytes)
        }
        let label = progress.attempt > 1 ? "total, attempt \(progress.attempt)" : "total"
        whole = Item(label: label, sent: progress.bytesSent, total: progress.totalBytes)
        self.speed = speed
    }
}
