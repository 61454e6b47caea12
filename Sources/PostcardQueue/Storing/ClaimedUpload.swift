#if Queue
import GRDB
import HTTPTypes

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// All that is needed to send an upload.
struct ClaimedUpload: Sendable {
    let upload: QueuedUpload
    /// Those of the request, the `Idempotency-Key` among them.
    let headerFields: HTTPFields
    let form: QueuedForm
    let folder: String?
    /// Where the server keeps what it has of the form, where it resumes uploads.
    let resource: URL?
    /// The number of attempts that failed since it was enqueued or last retried by hand.
    let failures: Int

    init(_ row: Row) throws {
        upload = try QueuedUpload(row)
        failures = row["failures"]
        folder = row["folder"]
        resource = (row["resource"] as String?).flatMap { URL(string: $0) }
        let decoder = JSONDecoder()
        do {
            var fields = HTTPFields(try decoder.decode([QueuedForm.HeaderField].self, from: row["headerFields"]))
            if let name = HTTPField.Name("Idempotency-Key") { fields[name] = row["idempotencyKey"] }
            headerFields = fields
            form = try decoder.decode(QueuedForm.self, from: row["form"])
        } catch {
            throw DatabaseError(
                resultCode: .SQLITE_CORRUPT, message: "the form of upload \(upload.id) cannot be read: \(error)")
        }
    }
}

/// An upload that is about to be put into a queue.
struct EnqueuedRequest: Sendable {
    let url: URL
    let method: HTTPRequest.Method
    let headerFields: [QueuedForm.HeaderField]
    let idempotencyKey: String
    let form: QueuedForm
    let folder: String?
    let totalBytes: Int64
    let conditions: UploadConditions
}
#endif
