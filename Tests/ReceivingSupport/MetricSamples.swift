import PostcardTestSupport

/// Metrics in Prometheus' text format, by name and labels as they are written.
package struct MetricSamples {
    package let values: [String: Double]

    package init(_ text: String) {
        let lines = text.split(separator: "\n").filter { !$0.hasPrefix("#") }
        values = Dictionary(
            lines.compactMap { line in
                guard let space = line.lastIndex(of: " "), let value = Double(line[line.index(after: space)...]) else {
                    return nil
                }
                return (String(line[..<space]), value)
            }, uniquingKeysWith: { first, _ in first })
    }

    package subscript(name: String) -> Double? { values[name] }
}

extension RunningReceiver {
    package func metrics() async throws -> MetricSamples { MetricSamples(try await metricsText()) }

    package func metricsText() async throws -> String {
        try await Program.run("curl", ["-sS", "--max-time", "\(Self.patience)", "\(url)/metrics"]).text
    }
}
