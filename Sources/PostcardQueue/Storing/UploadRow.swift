#if Queue
import GRDB
import HTTPTypes

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// When an upload may be sent. The database looks for the next one by this alone, whatever else waits.
enum Schedule: Int {
    /// It may be sent.
    case ready
    /// Its time has not come.
    case delayed
    /// Another of its group is before it.
    case behind
}

extension QueuedUpload {
    /// What is read of each upload.
    static let columns = """
        SELECT upload.*, response.status AS responseStatus, response.contentType AS responseType,
            response.body AS responseBody
        FROM upload LEFT JOIN response USING (id)
        """

    init(_ row: Row) throws {
        id = row["id"]
        guard let url = URL(string: row["url"]), let method = HTTPRequest.Method(row["method"]),
            let kind = State.Kind(rawValue: row["state"])
        else { throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "the upload \(id) cannot be read") }
        self.url = url
        self.method = method
        bytesSent = row["sent"]
        totalBytes = row["total"]
        attempts = row["attempts"]
        enqueued = Date(timeIntervalSince1970: row["enqueued"])
        conditions = UploadConditions(
            notBefore: (row["notBefore"] as Double?).map(Date.init(timeIntervalSince1970:)),
            needsUnmeteredNetwork: row["unmetered"], priority: row["priority"], group: row["sequence"])
        let reason: String? = row["reason"]
        state =
            switch kind {
            case .waiting: .waiting
            case .sending: .sending
            case .retrying: .retrying(at: Date(timeIntervalSince1970: row["due"]), because: reason ?? "")
            case .done:
                .done(
                    Response(
                        status: row["responseStatus"] ?? 0, contentType: row["responseType"],
                        body: row["responseBody"] ?? Data()))
            case .failed: .failed(because: reason ?? "")
            case .cancelled: .cancelled
            }
    }
}
#endif
