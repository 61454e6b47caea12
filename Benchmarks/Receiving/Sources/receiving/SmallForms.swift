import Foundation

/// Forms of three fields and a picture of 20 KB, sent by `wrk` over 16 connections to both receivers alternately.
struct SmallForms {
    private static let rounds = 5
    private static let seconds = 4
    private static let maximumPeakBytes = 64 << 20

    let folder: URL
    let yardstick: URL

    private struct Results {
        var formsPerSecond = Figures()
        var median = Figures()
        var slowest = Figures()
        var forms = 0.0
        var processorSeconds = 0.0
    }

    /// Runs all, prints a table, and says which goals were met.
    func compare() throws -> [Bool] {
        let picture = folder.appending(path: "picture.jpg")
        try Data((0..<20_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }).write(to: picture)
        let receivers = try Receiver.Kind.allCases.map { try Receiver($0, in: folder, yardstick: yardstick) }
        defer { for receiver in receivers { try? receiver.end() } }
        var results = [Results](repeating: Results(), count: receivers.count)
        // One round more than counts: the first finds nothing in its caches.
        for round in 0...Self.rounds {
            for index in round % 2 == 0 ? [0, 1] : [1, 0] {
                try measure(receivers[index], picture, into: &results[index], counts: round > 0)
            }
        }
        show("\nForms of three fields and a picture of 20 KB by wrk, 16 connections, \(Self.rounds) rounds by turns\n")
        show(heading(["receiver", "forms/s", "from to", "p50 ms", "p99 ms", "CPU µs", "goal"]))
        let ofYardstick = results[1]
        return try zip(Receiver.Kind.allCases, receivers).enumerated().map { index, contestant in
            let (kind, receiver) = contestant
            let result = results[index]
            let peak = try receiver.peakBytes
            let isMet =
                kind == .yardstick
                || (result.formsPerSecond.median >= ofYardstick.formsPerSecond.median
                    && result.slowest.median <= ofYardstick.slowest.median && peak <= Self.maximumPeakBytes)
            show(
                row([
                    "\(kind.rawValue), \(mebibytes(peak)) MiB", decimal(result.formsPerSecond.median),
                    result.formsPerSecond.spread, decimal(result.median.median), decimal(result.slowest.median),
                    decimal(result.processorSeconds / result.forms * 1e6),
                    kind == .postcard ? verdict("as Go, 64 MiB", isMet) : "",
                ]))
            return isMet
        }
    }

    private func measure(_ receiver: Receiver, _ picture: URL, into results: inout Results, counts: Bool) throws {
        guard let script = Bundle.module.url(forResource: "forms", withExtension: "lua") else {
            throw Failure("The script for wrk is not where it was built.")
        }
        let (before, recordsBefore) = try (receiver.processorSeconds, receiver.count)
        let output = try run([
            "wrk", "--threads", "1", "--connections", "16", "--duration", "\(Self.seconds)s", "--latency",
            "--script", script.path, receiver.url.absoluteString, "--", picture.path,
        ]).output
        let line = output.split(separator: "\n").first { $0.hasPrefix("figures ") }
        let figures = line?.split(separator: " ").dropFirst().compactMap { Double($0) } ?? []
        guard figures.count == 5, figures[1] == 0 else { throw Failure("wrk saw failures: \(output)") }
        let records = try receiver.count - recordsBefore
        // What was under way at the end may have been received and not counted.
        guard records >= Int(figures[0]) else { throw Failure("Of \(Int(figures[0])) forms, \(records) are there.") }
        guard counts else { return }
        results.forms += Double(records)
        results.processorSeconds += try receiver.processorSeconds - before
        results.formsPerSecond.add(figures[0] / figures[2] * 1e6)
        results.median.add(figures[3] / 1000)
        results.slowest.add(figures[4] / 1000)
    }
}
