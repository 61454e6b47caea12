/// What the rounds of one program took.
struct Figures {
    private(set) var seconds: [Double] = []
    private(set) var peakBytes = 0

    mutating func add(_ seconds: Double, peakBytes: Int = 0) {
        self.seconds.append(seconds)
        self.peakBytes = max(self.peakBytes, peakBytes)
    }

    var median: Double {
        let sorted = seconds.sorted()
        return sorted[sorted.count / 2]
    }

    var spread: String {
        let sorted = seconds.sorted()
        return "\(decimal(sorted[0])) to \(decimal(sorted[sorted.count - 1]))"
    }
}

func decimal(_ value: Double) -> String {
    let hundredths = Int((value * 100).rounded())
    return "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100)"
}

private let widths = [36, 7, 12, 9, 8, 19]

func row(_ cells: [String]) -> String {
    let padded = zip(cells, widths).map { $0 + String(repeating: " ", count: max(0, $1 - $0.count)) }
    return "| " + padded.joined(separator: " | ") + " |"
}

func heading(_ titles: [String]) -> String {
    row(titles) + "\n" + row(widths.map { String(repeating: "-", count: $0) })
}

func verdict(_ goal: String, _ isMet: Bool) -> String {
    "\(goal) \(isMet ? "met" : "MISSED")"
}
