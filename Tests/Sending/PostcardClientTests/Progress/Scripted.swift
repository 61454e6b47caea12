import Foundation
import HTTPTypes
import PostcardClient

/// A transport that reads the body and reports it in chunks of sizes that the test decides.
struct Scripted: UploadTransport {
    /// The sizes of the chunks, one after the other.
    let chunkSizes: @Sendable () -> Int

    func send(
        _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
    ) async throws -> UploadResponse {
        if let body = request.body {
            let reader = try body.reader()
            report(.sent(bytes: 0))
            while try await reader.prepare() {
                var buffer = [UInt8](repeating: 0, count: max(chunkSizes(), 1))
                _ = try buffer.withUnsafeMutableBytes { try reader.read(into: $0) }
                report(.sent(bytes: reader.position))
            }
        }
        report(.received(bytes: 0))
        return UploadResponse(status: .created, headerFields: HTTPFields(), body: Data())
    }
}
