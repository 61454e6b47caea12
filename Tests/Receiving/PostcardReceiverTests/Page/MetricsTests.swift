import CoreMetrics
import Foundation
import MetricsTestKit
import PostcardReceivingSupport
import PostcardServer
import PostcardTestSupport
import SystemPackage
import Testing

@testable import PostcardReceiver

@Suite(.timeLimit(.minutes(10)))
struct MetricsTests {
    private static let file = Form.fileHeader + "content" + Form.end

    /// A form that is stored, one that is refused, and a request that is no form.
    private func exchangeThree(with receiver: RunningReceiver) async throws {
        _ = try await receiver.exchange(Form.request(body: Self.file))
        _ = try await receiver.exchange(Form.request(body: Form.fileHeader))
        _ = try await receiver.exchange(Form.request(body: "{}", contentType: "Content-Type: application/json"))
    }

    @Test func `metrics count what was received, refused and read`() async throws {
        try await withReceiver { receiver in
            try await exchangeThree(with: receiver)
            let metrics = try await receiver.metrics()
            let bytes = Double(Self.file.utf8.count + Form.fileHeader.utf8.count)
            #expect(metrics["postcard_uploads_received_total"] == 1)
            #expect(metrics["postcard_uploads_repeated_total"] == 0)
            #expect(metrics["postcard_files_received_total"] == 1)
            #expect(metrics["postcard_uploads_in_progress"] == 0)
            #expect(metrics["postcard_received_bytes_total"] == bytes)
            #expect(metrics[#"postcard_refusals_total{code="missing-close-delimiter"}"#] == 1)
            #expect(metrics[#"postcard_refusals_total{code="not-form-data"}"#] == 1)
            #expect(metrics["postcard_upload_size_bytes_sum"] == bytes)
            #expect(metrics["postcard_upload_size_bytes_count"] == 2)
            #expect(metrics[#"postcard_upload_size_bytes_bucket{le="1024"}"#] == 2)
            #expect(metrics[#"postcard_upload_duration_seconds_bucket{le="+Inf"}"#] == 2)
            // The request for the metrics is one of them.
            #expect((metrics[#"postcard_share_used{resource="requests"}"#] ?? 0) >= 1)
            #expect(metrics[#"postcard_share_waiting{resource="screenings"}"#] == 0)
            #expect((metrics[#"postcard_share_limit{resource="uploads"}"#] ?? 0) >= 1)
            #expect(metrics["postcard_file_work_waiting"] != nil)
            #expect((metrics["postcard_store_free_bytes"] ?? 0) > 0)
            #expect(metrics["postcard_store_damaged_uploads"] == 0)
            #expect((metrics["postcard_start_time_seconds"] ?? 0) > 1.7e9)
        }
    }

    @Test func `a store that fails is counted by what it was to do, and how it failed`() async throws {
        try await withReceiver { receiver in
            _ = try await receiver.exchange(Form.request(body: Self.file))
            let id = try #require(try receiver.records.first)
            let record = receiver.directory.appending(id).appending("record.json")
            try Data("{".utf8).write(to: URL(filePath: record.string))
            #expect(try await receiver.curl("\(receiver.url)/uploads/\(id)").text.contains("store-unavailable"))
            let metrics = try await receiver.metrics()
            #expect(metrics[#"postcard_store_errors_total{code="damaged",operation="read"}"#] == 1)
            #expect(metrics["postcard_store_damaged_uploads"] == 1)
        }
    }

    @Test func `promtool finds nothing wrong with the metrics`() async throws {
        try Tool.require("promtool")
        try await withReceiver { receiver in
            try await exchangeThree(with: receiver)
            let folder = try TemporaryFolder()
            let file = try folder.file("metrics", Data(try await receiver.metricsText().utf8))
            let check = try await Program.run("sh", ["-c", "promtool check metrics < '\(file.path)' 2>&1"])
            #expect(check.status == 0, "\(check.text)")
            #expect(check.text.isEmpty)
        }
    }

    @Test func `every metric has a line of help and a type`() async throws {
        try await withReceiver { receiver in
            try await exchangeThree(with: receiver)
            let lines = try await receiver.metricsText().split(separator: "\n").map { $0.split(separator: " ") }
            let types = lines.filter { $0[1] == "TYPE" }.map { $0[2] }
            let help = lines.filter { $0[1] == "HELP" }.map { $0[2] }
            #expect(types == help)
            #expect(Set(types).count == types.count)
            #expect(types.count >= 14)
        }
    }

    @Test func `an app with metrics of its own gets those of the receiver too`() async throws {
        let ofApp = TestMetrics()
        try await withMetricsFactory(ofApp) {
            for _ in 0..<2 {
                try await withReceiver { receiver in
                    try await exchangeThree(with: receiver)
                    #expect(try await receiver.metrics()["postcard_uploads_received_total"] == 1)
                }
            }
        }
        #expect(try ofApp.expectCounter("postcard_uploads_received_total").totalValue == 2)
        let refusals = try ofApp.expectCounter("postcard_refusals_total", [("code", "missing-close-delimiter")])
        #expect(refusals.totalValue == 2)
    }

    @Test func `an app can choose its metrics once for the process, also after the receiver started`() async throws {
        try await withReceiver { _ in
            // A second call ends the process. No other test calls it.
            MetricsSystem.bootstrap(NOOPMetricsHandler.instance)
        }
        try await withReceiver { receiver in
            let metrics = try await receiver.metrics()
            #expect(metrics["postcard_uploads_received_total"] == 0)
        }
    }
}

@Suite struct MetricsCollectorTests {
    private static let values: [(value: Double, text: String)] = [
        (0, "0"), (3, "3"), (-1, "-1"), (0.25, "0.25"), (1e20, "1e+20"), (.infinity, "+Inf"), (-.infinity, "-Inf"),
        (.nan, "NaN"),
    ]

    @Test(arguments: values) func `numbers are written as Prometheus reads them`(value: Double, text: String) {
        let collector = MetricsCollector()
        Meter(label: "m", factory: collector).set(value)
        #expect(collector.text == "# TYPE m gauge\nm \(text)\n")
    }

    private static let labels: [(value: String, written: String)] = [
        ("", #""""#), (#"a"b"#, #""a\"b""#), (#"a\b"#, #""a\\b""#), ("a\nb", #""a\nb""#), ("a\r\nb", "\"a\r\\nb\""),
        ("초코", #""초코""#),
    ]

    @Test(arguments: labels) func `values of labels cannot end their line`(value: String, written: String) {
        let collector = MetricsCollector()
        Counter(label: "c", dimensions: [("l", value)], factory: collector).increment()
        #expect(collector.text == "# TYPE c counter\nc{l=\(written)} 1\n")
    }

    @Test func `a value is in the buckets of its bound and of all above`() {
        let collector = MetricsCollector()
        let timer = CoreMetrics.Timer(label: "t", dimensions: [("a", "b")], factory: collector)
        for milliseconds in [5, 6, 1_800_000, 1_800_001] { timer.recordMilliseconds(milliseconds) }
        let samples = MetricSamples(collector.text)
        let expected = [("0.005", 1.0), ("0.01", 2), ("300", 2), ("1800", 3), ("+Inf", 4)]
        for (bound, count) in expected { #expect(samples[#"t_bucket{a="b",le="\#(bound)"}"#] == count, "\(bound)") }
        #expect(abs((samples[#"t_sum{a="b"}"#] ?? 0) - 3600.012) < 1e-6)
        #expect(samples[#"t_count{a="b"}"#] == 4)
    }

    @Test func `labels that never end count together once they are too many`() {
        let collector = MetricsCollector()
        let maximum = MetricsCollector.maximumSeries
        for number in 0..<(maximum + 50) {
            Counter(label: "c", dimensions: [("code", "code-\(number)")], factory: collector).increment()
        }
        let samples = MetricSamples(collector.text)
        #expect(samples.values.count == maximum + 1)
        #expect(samples[#"c{code="other"}"#] == 50)
    }

    @Test func `the same name and labels are one series, in any order of the labels`() {
        let collector = MetricsCollector()
        Counter(label: "c", dimensions: [("a", "1"), ("b", "2")], factory: collector).increment()
        Counter(label: "c", dimensions: [("b", "2"), ("a", "1")], factory: collector).increment(by: 2)
        #expect(collector.text == "# TYPE c counter\nc{a=\"1\",b=\"2\"} 3\n")
    }

    @Test func `a name has one type, that of its first use`() {
        let collector = MetricsCollector()
        Counter(label: "c", factory: collector).increment()
        Meter(label: "c", factory: collector).set(9)
        #expect(collector.text == "# TYPE c counter\nc 1\n")
    }
}
