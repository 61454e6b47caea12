import Foundation

/// What the rounds of one program took.
struct Figures {
    private var values: [Double] = []

    mutating func add(_ value: Double) { values.append(value) }

    var median: Double {
        let sorted = values.sorted()
        return sorted[sorted.count / 2]
    }

    var spread: String { "\(decimal(values.min() ?? 0)) to \(decimal(values.max() ?? 0))" }
}

/// A number with as many places behind the point.
func decimal(_ value: Double, _ places: Int = 2) -> String { String(format: "%.\(places)f", value) }

func mebibytes(_ bytes: Int) -> String { decimal(Double(bytes) / Double(1 << 20)) }

private let widths = [28, 10, 20, 10, 10, 10, 24]

func row(_ cells: [String]) -> String {
    let padded = zip(cells, widths).map { $0 + String(repeating: " ", count: max(0, $1 - $0.count)) }
    return "| " + padded.joined(separator: " | ") + " |"
}

func heading(_ titles: [String]) -> String {
    row(titles) + "\n" + row(widths.map { String(repeating: "-", count: $0) })
}

func verdict(_ goal: String, _ isMet: Bool) -> String { "\(goal) \(isMet ? "met" : "MISSED")" }

/// Prints a line at once: what comes behind it may take a while.
func show(_ line: String) {
    print(line)
    fflush(nil)
}
