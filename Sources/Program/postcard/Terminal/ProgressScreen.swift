import Foundation
import PostcardClient
import Synchronization

/// Draws the progress bars of an upload on the terminal at standard error.
final class ProgressScreen: Sendable {
    private let state = Mutex(State())

    private struct State {
        var latest: UploadProgress?
        var phase = Phase.sending
        var lastDrawn: ContinuousClock.Instant?
        var lines = RedrawnLines()
    }

    /// The phase of an upload. The raw value is its text; sending has none, because the bars show it.
    private enum Phase: String {
        case preparing = "preparing the form"
        case waitingForNetwork = "waiting for a network"
        case sending = ""
        case awaitingResponse = "waiting for the response"
        case retrying = "waiting for the next attempt"
    }

    /// The minimum time between two redraws. More frequent changes would not be visible.
    private static let interval = Duration.milliseconds(80)

    func show(_ progress: UploadProgress) {
        state.withLock { state in
            let now = ContinuousClock.now
            state.latest = progress
            if let lastDrawn = state.lastDrawn, now - lastDrawn < Self.interval { return }
            state.lastDrawn = now
            Self.draw(&state)
        }
    }

    /// Shows an event. A new phase is shown at once.
    func show(_ event: UploadEvent) {
        switch event {
        case .sending(let progress):
            state.withLock { $0.phase = .sending }
            show(progress)
        case .awaitingResponse(let progress): enter(.awaitingResponse, progress)
        case .preparing: enter(.preparing)
        case .waitingForNetwork: enter(.waitingForNetwork)
        case .retrying: enter(.retrying)
        case .done: finish()
        }
    }

    private func enter(_ phase: Phase, _ progress: UploadProgress? = nil) {
        state.withLock { state in
            state.phase = phase
            state.latest = progress ?? state.latest
            Self.draw(&state)
        }
    }

    /// Writes a permanent line above the redrawn lines.
    func say(_ line: String) {
        state.withLock { state in
            state.lines.clear()
            Terminal.say(line)
            Self.draw(&state)
        }
    }

    func finish() {
        state.withLock { state in
            state.phase = .sending
            Self.draw(&state)
        }
    }

    private static func draw(_ state: inout State) {
        let size = Terminal.size
        guard let progress = state.latest else {
            let lines = state.phase == .sending ? [] : [DisplayWidth.cut(state.phase.rawValue, to: size.columns - 1)]
            return state.lines.draw(lines)
        }
        var lines = ProgressLines(progress, speed: progress.bytesPerSecond)
        lines.phase = state.phase.rawValue
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
        let attempt = progress.attempt > 1 ? "total, attempt \(progress.attempt)" : "total"
        let label = progress.isResumed ? "resumed" : attempt
        whole = Item(label: label, sent: progress.bytesSent, total: progress.totalBytes)
        self.speed = speed
    }
}

/// The progress of an upload as lines: a bar for each file, and a bar for the whole upload with its speed and remaining
/// time.
struct ProgressLines {
    /// A file or the whole upload.
    struct Item: Equatable {
        let label: String
        let sent: Int64
        /// The total number of bytes; `nil` if unknown.
        let total: Int64?
    }

    var files: [Item]
    var whole: Item
    /// The speed in bytes per second; `nil` if unknown.
    var speed: Double?
    /// The text in place of the speed while the upload is not sending. Defaults to none.
    var phase = ""

    /// The lines for the given width and number. Files in progress have priority over all others.
    func drawn(columns: Int, rows: Int) -> [String] {
        let labels = (files + [whole]).map { DisplayWidth.of($0.label) }
        let labelColumns = min(max(labels.max() ?? 0, 5), max(columns / 3, 5))
        let shown = visibleFiles(most: max(rows - 2, 1))
        var lines = shown.map { line(for: $0, labelColumns: labelColumns, columns: columns, tail: "") }
        lines.append(line(for: whole, labelColumns: labelColumns, columns: columns, tail: tail))
        return lines
    }

    private func visibleFiles(most: Int) -> ArraySlice<Item> {
        guard files.count > most else { return files[...] }
        let current = files.firstIndex { $0.sent < $0.total ?? .max } ?? files.count
        let start = min(max(current - most / 2, 0), files.count - most)
        return files[start..<(start + most)]
    }

    private var tail: String {
        guard phase.isEmpty else { return "  \(phase)" }
        guard let speed, speed > 0 else { return "" }
        let rate = "  \(Self.size(Int64(speed)))/s"
        guard let total = whole.total, whole.sent < total else { return rate }
        return rate + "  \(Self.duration(Double(total - whole.sent) / speed)) left"
    }

    private func line(for item: Item, labelColumns: Int, columns: Int, tail: String) -> String {
        let fraction = item.total.map { $0 > 0 ? min(Double(item.sent) / Double($0), 1) : 1 }
        // Percentages are rounded down, so 100 % means that everything was sent.
        let percent = fraction.map { Self.padded("\(Int($0 * 100))", to: 3) + " %" } ?? "     "
        let sizes = item.total.map { "\(Self.size(item.sent)) of \(Self.size($0))" } ?? Self.size(item.sent)
        let figures = "  \(percent)  \(Self.padded(sizes, to: 18))\(tail)"
        let barColumns = columns - labelColumns - 2 - DisplayWidth.of(figures) - 1
        if barColumns >= 4 {
            let label = DisplayWidth.fit(item.label, to: labelColumns)
            return "\(label)  \(Self.bar(fraction, columns: min(barColumns, 40)))\(figures)"
        }
        // A line that is too long keeps the percentage and a part of the name.
        let shorter = [figures, "  \(percent)\(tail)", "  \(percent)  \(sizes)", "  \(percent)"]
        let room = columns - 1
        let kept = shorter.first { DisplayWidth.of($0) + 5 <= room } ?? ""
        return DisplayWidth.fit(item.label, to: min(room - DisplayWidth.of(kept), labelColumns)) + kept
    }

    private static func bar(_ fraction: Double?, columns: Int) -> String {
        let full = Int((fraction ?? 0) * Double(columns))
        return String(repeating: "█", count: full) + String(repeating: "░", count: columns - full)
    }

    private static func padded(_ text: String, to columns: Int) -> String {
        String(repeating: " ", count: max(columns - text.count, 0)) + text
    }

    /// A number of bytes as text with about three digits, in powers of 1000 as for disks and networks.
    static func size(_ bytes: Int64) -> String {
        var value = Double(bytes)
        for unit in ["bytes", "kB", "MB", "GB"] {
            // From 999.95 on, one decimal place would show 1000.0, so the next unit is used.
            if value < 999.95 { return unit == "bytes" ? "\(bytes) \(unit)" : String(format: "%.1f %@", value, unit) }
            value /= 1000
        }
        return String(format: "%.1f TB", value)
    }

    /// A number of seconds as text, in minutes and seconds, or in hours, minutes and seconds.
    static func duration(_ seconds: Double) -> String {
        guard seconds.isFinite, seconds < 360_000 else { return "--:--" }
        let whole = Int(seconds.rounded(.up))
        let (hours, minutes) = (whole / 3600, whole / 60 % 60)
        let end = String(format: "%02d", whole % 60)
        return hours > 0 ? "\(hours):" + String(format: "%02d", minutes) + ":\(end)" : "\(minutes):\(end)"
    }
}
