import CoreMetrics
import HTTPTypes
import Hummingbird
import NIOCore
import PostcardFoundation
import PostcardReception
import PostcardServer
import Synchronization

/// Responds to `GET /metrics`.
struct MetricsPage: Sendable {
    let collector: MetricsCollector
    let shares: ShareAccount
    /// The store, if it is a directory of this machine.
    let local: LocalUploadStore?
    let webhooks: WebhookDeliverer?
    let started: Date

    func response() async -> Response {
        await measure()
        return Response(
            status: .ok,
            headers: [.contentType: "text/plain; version=0.0.4; charset=utf-8", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: collector.text)))
    }

    /// Updates the gauges, whose values are read on request.
    private func measure() async {
        set(.startTime, started.timeIntervalSince1970)
        set(.fileWorkWaiting, Double(waitingFileWork))
        for usage in shares.usage {
            let labels = [("resource", usage.resource.metricName)]
            set(.shareUsed, Double(usage.used), labels)
            set(.shareLimit, Double(usage.total), labels)
            set(.shareWaiting, Double(usage.waiting), labels)
        }
        for (metric, value) in webhooks?.measurements ?? [] { set(metric, value) }
        guard let local else { return }
        if let free = try? await local.freeBytes() { set(.storeFreeBytes, Double(free)) }
        set(.damagedUploads, Double(local.damagedCount))
    }

    private func set(_ metric: ReceiverMetric, _ value: Double, _ labels: [(String, String)] = []) {
        Meter(label: metric.rawValue, dimensions: labels, factory: collector).set(value)
    }
}

/// Collects the metrics of one receiver, for `GET /metrics`.
///
/// Only metrics that were made with this factory are collected. An app chooses the factory of its process with
/// `MetricsSystem.bootstrap`. That factory receives the same metrics.
final class MetricsCollector: MetricsFactory {
    /// A metric with all combinations of its labels.
    private struct Family {
        let kind: Kind
        var series: [Labels: any Series] = [:]
    }

    private let families = Mutex<[String: Family]>([:])

    /// A factory that makes each metric twice: with this factory, and with the factory of the process.
    var withThatOfProcess: any MetricsFactory { MultiplexMetricsHandler(factories: [MetricsSystem.factory, self]) }

    /// The maximum number of label combinations of a metric. Further combinations are counted together, with `other` as
    /// the value of each label.
    static let maximumSeries = 200

    func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        series(of: label, .counter, dimensions) { CountSeries() }
    }

    func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        series(of: label, .gauge, dimensions) { GaugeSeries() }
    }

    func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        if aggregate { return series(of: label, .histogram, dimensions) { HistogramSeries(HistogramSeries.bytes) } }
        return series(of: label, .gauge, dimensions) { GaugeSeries() }
    }

    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        series(of: label, .histogram, dimensions) { HistogramSeries(HistogramSeries.seconds) }
    }

    // Metrics are shown as long as the receiver runs, even after they are destroyed.
    func destroyCounter(_ handler: any CounterHandler) {}
    func destroyMeter(_ handler: any MeterHandler) {}
    func destroyRecorder(_ handler: any RecorderHandler) {}
    func destroyTimer(_ handler: any TimerHandler) {}

    /// Returns the series of a metric with these labels. If the name belongs to a metric of another kind, the new
    /// series is not shown.
    private func series<Made: Series>(
        of name: String, _ kind: Kind, _ dimensions: [(String, String)], make: () -> Made
    ) -> Made {
        families.withLock { families in
            var family = families[name] ?? Family(kind: kind)
            guard family.kind == kind else { return make() }
            var labels = Labels(dimensions)
            if family.series[labels] == nil, family.series.count >= Self.maximumSeries { labels = labels.others }
            if let known = family.series[labels] { return known as? Made ?? make() }
            let made = make()
            family.series[labels] = made
            families[name] = family
            return made
        }
    }

    /// All metrics in Prometheus' text format, version 0.0.4.
    var text: String {
        let families = families.withLock { $0 }
        var text = ""
        for (name, family) in families.sorted(by: { $0.key < $1.key }) {
            if let metric = ReceiverMetric(rawValue: name) { text += "# HELP \(name) \(metric.help)\n" }
            text += "# TYPE \(name) \(family.kind)\n"
            for (labels, series) in family.series.sorted(by: { $0.key.text < $1.key.text }) {
                series.write(name, labels, to: &text)
            }
        }
        return text
    }

    private enum Kind: String, CustomStringConvertible {
        case counter, gauge, histogram

        var description: String { rawValue }
    }
}

/// The labels of a series, in a fixed order.
private struct Labels: Hashable {
    private let pairs: [[String]]

    init(_ dimensions: [(String, String)]) {
        pairs = dimensions.map { [$0.0, $0.1] }.sorted { $0[0] < $1[0] }
    }

    /// The labels for all combinations beyond the maximum.
    var others: Labels { Labels(pairs.map { ($0[0], "other") }) }

    func adding(_ name: String, _ value: String) -> Labels { Labels(pairs.map { ($0[0], $0[1]) } + [(name, value)]) }

    /// The labels in the text format, as written after a metric's name.
    var text: String {
        guard !pairs.isEmpty else { return "" }
        return "{" + pairs.map { "\($0[0])=\"\(Self.escaped($0[1]))\"" }.joined(separator: ",") + "}"
    }

    private static func escaped(_ value: String) -> String {
        var escaped = ""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\\": escaped += #"\\"#
            case "\"": escaped += #"\""#
            case "\n": escaped += #"\n"#
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}

/// The values of a metric with one combination of labels.
private protocol Series: Sendable {
    func write(_ name: String, _ labels: Labels, to text: inout String)
}

private final class CountSeries: Series, CounterHandler {
    private let count = Atomic<Int64>(0)

    func increment(by amount: Int64) { count.wrappingAdd(amount, ordering: .relaxed) }

    func reset() { count.store(0, ordering: .relaxed) }

    func write(_ name: String, _ labels: Labels, to text: inout String) {
        text += "\(name)\(labels.text) \(count.load(ordering: .relaxed))\n"
    }
}

private final class GaugeSeries: Series, MeterHandler, RecorderHandler {
    private let value = Mutex(0.0)

    func set(_ value: Int64) { set(Double(value)) }
    func set(_ value: Double) { self.value.withLock { $0 = value } }
    func increment(by amount: Double) { value.withLock { $0 += amount } }
    func decrement(by amount: Double) { value.withLock { $0 -= amount } }
    func record(_ value: Int64) { set(value) }
    func record(_ value: Double) { set(value) }

    func write(_ name: String, _ labels: Labels, to text: inout String) {
        text += "\(name)\(labels.text) \(shown(value.withLock { $0 }))\n"
    }
}

private final class HistogramSeries: Series, TimerHandler, RecorderHandler {
    /// The upper bounds of the buckets for times, in seconds: from a small form on the same machine to a large form
    /// over a slow connection.
    static let seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800]
    /// The upper bounds of the buckets for sizes: 1 KiB to 4 GiB, each four times the previous bound.
    static let bytes = (0...11).map { Double(Int64(1024) << (2 * $0)) }

    private struct State {
        /// The number of values in each bucket, not cumulative. The last bucket has the values above all bounds.
        var counts: [Int]
        var sum = 0.0
    }

    private let bounds: [Double]
    private let state: Mutex<State>

    init(_ bounds: [Double]) {
        self.bounds = bounds
        state = Mutex(State(counts: Array(repeating: 0, count: bounds.count + 1)))
    }

    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }
    func record(_ value: Int64) { record(Double(value)) }

    func record(_ value: Double) {
        let bucket = bounds.firstIndex { value <= $0 } ?? bounds.count
        state.withLock { state in
            state.counts[bucket] += 1
            state.sum += value
        }
    }

    func write(_ name: String, _ labels: Labels, to text: inout String) {
        let state = state.withLock { $0 }
        var count = 0
        for (index, bound) in (bounds.map(shown) + ["+Inf"]).enumerated() {
            count += state.counts[index]
            text += "\(name)_bucket\(labels.adding("le", bound).text) \(count)\n"
        }
        text += "\(name)_sum\(labels.text) \(shown(state.sum))\n\(name)_count\(labels.text) \(count)\n"
    }
}

/// Formats a number for Prometheus.
private func shown(_ value: Double) -> String {
    if let whole = Int64(exactly: value) { return String(whole) }
    if value.isNaN { return "NaN" }
    return value.isInfinite ? (value < 0 ? "-Inf" : "+Inf") : "\(value)"
}
