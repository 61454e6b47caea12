import Foundation

/// The one in the middle.
func median(_ durations: [Duration]) -> Duration {
    durations.isEmpty ? .zero : durations.sorted()[durations.count / 2]
}

/// A number with as many places behind the point.
func decimal(_ value: Double, _ places: Int = 2) -> String { String(format: "%.\(places)f", value) }

func milliseconds(_ duration: Duration) -> String { decimal(duration / .milliseconds(1)) }

func mebibytes(_ bytes: Int) -> String { decimal(Double(bytes) / Double(1 << 20)) }

private let widths = [5, 10, 11, 16, 15, 9, 8]

func row(_ cells: [String]) -> String {
    let padded = zip(cells, widths).map { $0 + String(repeating: " ", count: max(0, $1 - $0.count)) }
    return "| " + padded.joined(separator: " | ") + " |"
}

func heading(_ titles: [String]) -> String {
    row(titles) + "\n" + row(widths.map { String(repeating: "-", count: $0) })
}

/// Prints a line at once: what comes behind it may take a while.
func show(_ line: String) {
    print(line)
    fflush(nil)
}

/// Why nothing can be measured.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
