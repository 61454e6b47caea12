import NIOCore
import PostcardServer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Something that happened, as `GET /events` tells it.
enum LiveEvent {
    /// A form was received: `uploaded`, and the record.
    case uploaded(UploadRecord)
    /// An upload was deleted: `deleted`, and its `id`.
    case deleted(UploadID)
    /// A request came: `request`, and its entry in the list of requests.
    case request(RequestSummary)

    /// The event as a message of the stream; `nil` where it cannot be written.
    var message: ByteBuffer? {
        // JSON as it is encoded here has no line breaks, which would end the message.
        switch self {
        case .uploaded(let record): return Self.message("uploaded", record.json())
        case .deleted(let id): return Self.message("deleted", try? JSONEncoder.forAnswers.encode(["id": id.text]))
        case .request(let summary): return Self.message("request", try? JSONEncoder.forAnswers.encode(summary))
        }
    }

    /// Whether the message would be longer, as far as that can be told without making it.
    func isLonger(than bytes: Int) -> Bool {
        if case .uploaded(let record) = self { record.expectedBytes > bytes } else { false }
    }

    private static func message(_ name: String, _ data: Data?) -> ByteBuffer? {
        guard let data else { return nil }
        var message = ByteBuffer(string: "event: \(name)\ndata: ")
        message.writeBytes(data)
        message.writeString("\n\n")
        return message
    }
}
