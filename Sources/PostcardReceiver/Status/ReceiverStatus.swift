import Hummingbird
import PostcardServer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What `GET /status` answers: how the receiver has fared since it was started.
struct ReceiverStatus: Encodable {
    let started: Date
    let uploads: UploadMeter.Counts
    /// The bytes that are free where uploads are kept; none where that cannot be said.
    let freeBytes: Int64?

    var response: Response {
        get throws {
            Response(
                status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-store"],
                body: ResponseBody(byteBuffer: ByteBuffer(bytes: try JSONEncoder.forAnswers.encode(self))))
        }
    }
}
