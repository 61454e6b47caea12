import CoreMetrics
import HTTPTypes
import Hummingbird
import NIOCore
import PostcardFoundation
import PostcardReception
import PostcardServer

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

    /// Reads what is not counted as it happens.
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
