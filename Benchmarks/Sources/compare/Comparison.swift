import Bodies
import PostcardForm

/// Two programs that read the same bytes, timed alternately in processor time, so that other work on the machine
/// affects neither much, and both equally.
struct Comparison {
    /// How often each side runs; the median is what counts.
    static let rounds = 9

    let byteCount: Int
    let partCount: Int
    /// The medians.
    let yardstick: Duration
    let ours: Duration

    init(byteCount: Int, partCount: Int, yardstick: () throws -> Void, ours: () throws -> Void) rethrows {
        self.byteCount = byteCount
        self.partCount = partCount
        try yardstick()
        try ours()
        var times: (yardstick: [Duration], ours: [Duration]) = ([], [])
        for _ in 0..<Self.rounds {
            times.yardstick.append(try ProcessorTime.measure(yardstick))
            times.ours.append(try ProcessorTime.measure(ours))
        }
        self.yardstick = times.yardstick.sorted()[Self.rounds / 2]
        self.ours = times.ours.sorted()[Self.rounds / 2]
    }

    /// Postcard's speed over the yardstick's.
    var ratio: Double { yardstick / ours }

    var bytesPerSecond: Double { Double(byteCount) * (Duration.seconds(1) / ours) }

    var partsPerSecond: Double { Double(partCount) * (Duration.seconds(1) / ours) }
}

extension Comparison {
    /// The parser against `memmem`.
    static func ofParsing(_ body: Body, chunkLength: Int) throws -> Comparison {
        var delimiters = 0
        var tally = Tally()
        let comparison = try Comparison(byteCount: body.bytes.count, partCount: body.partCount) {
            delimiters += body.scan(chunkLength: chunkLength)
        } ours: {
            tally = try body.parse(chunkLength: chunkLength)
        }
        // The first delimiter has no line break before it, and some span two chunks.
        precondition(delimiters <= (rounds + 1) * body.partCount && tally.parts == body.partCount)
        return comparison
    }

    /// A form's reader against a loop over `read(2)`.
    static func ofReading(_ file: TemporaryFile, metadata: MetadataPolicy) throws -> Comparison {
        var lengths = (plain: 0, form: 0)
        let comparison = try Comparison(byteCount: file.length, partCount: 1) {
            lengths.plain = try file.readPlainly()
        } ours: {
            lengths.form = try file.readAsForm(metadata: metadata)
        }
        precondition(lengths.plain == file.length && lengths.form > file.length)
        return comparison
    }
}

// MARK: - The table

extension Comparison {
    static func heading(yardstick: String) -> String {
        row(["case", "chunk", yardstick, "Postcard", "ratio", "parts/s", "goal"]) + "\n"
            + row(zip(widths, 0...).map { String(repeating: "-", count: $0.0) })
    }

    func row(title: String, chunk: String, goal: Goal?) -> String {
        let verdict = goal.map { "\($0) \($0.isMet(by: self) ? "met" : "MISSED")" } ?? ""
        return Self.row([
            title, chunk, Self.gigabytes(Double(byteCount) * (Duration.seconds(1) / yardstick)),
            Self.gigabytes(bytesPerSecond), Self.decimal(ratio),
            partCount > 1 ? Self.decimal(partsPerSecond / 1e6) + " M" : "", verdict,
        ])
    }

    private static let widths = [35, 6, 10, 10, 6, 8, 20]

    private static func row(_ cells: [String]) -> String {
        let padded = zip(cells, widths).map { $0 + String(repeating: " ", count: max(0, $1 - $0.count)) }
        return "| " + padded.joined(separator: " | ") + " |"
    }

    private static func gigabytes(_ bytesPerSecond: Double) -> String {
        decimal(bytesPerSecond / 1e9) + " GB/s"
    }

    private static func decimal(_ value: Double) -> String {
        let hundredths = Int((value * 100).rounded())
        return "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100)"
    }
}
