/// The metrics of a receiver, named by the conventions of Prometheus: base units, and `_total` for what only grows.
package enum ReceiverMetric: String, CaseIterable, Sendable {
    case uploadsReceived = "postcard_uploads_received_total"
    case uploadsRepeated = "postcard_uploads_repeated_total"
    case uploadsInProgress = "postcard_uploads_in_progress"
    case filesReceived = "postcard_files_received_total"
    case bytesReceived = "postcard_received_bytes_total"
    case uploadDuration = "postcard_upload_duration_seconds"
    case uploadSize = "postcard_upload_size_bytes"
    case refusals = "postcard_refusals_total"
    case storeErrors = "postcard_store_errors_total"
    case uploadsRemoved = "postcard_uploads_removed_total"
    case storedBytes = "postcard_stored_bytes"
    case storeFreeBytes = "postcard_store_free_bytes"
    case damagedUploads = "postcard_store_damaged_uploads"
    case shareUsed = "postcard_share_used"
    case shareLimit = "postcard_share_limit"
    case shareWaiting = "postcard_share_waiting"
    case fileWorkWaiting = "postcard_file_work_waiting"
    case startTime = "postcard_start_time_seconds"

    /// What the metric measures, in a line.
    package var help: String {
        switch self {
        case .uploadsReceived: "Forms that became records."
        case .uploadsRepeated: "Forms that were received again under the same key, and made no second record."
        case .uploadsInProgress: "Requests whose form, or part of one, is being received."
        case .filesReceived: "Files of the forms that became records."
        case .bytesReceived: "Bytes of all forms that were read, including those that were refused."
        case .uploadDuration: "Time from the first byte of a form, or of a part of one, to its end."
        case .uploadSize: "Size of the forms that were read, including those that were refused."
        case .refusals: "Refused requests, by the code of the problem."
        case .storeErrors: "Operations of the store that failed, by operation and by the code of the error."
        case .uploadsRemoved: "Uploads that were removed to keep the limits of age and size, by the limit."
        case .storedBytes: "Size of all uploads, if it is limited."
        case .storeFreeBytes: "Bytes that are free on the disk of the store."
        case .damagedUploads: "Uploads that are set aside because they are damaged."
        case .shareUsed: "How much of a shared resource clients hold, by resource."
        case .shareLimit: "How much of a shared resource there is, by resource."
        case .shareWaiting: "Requests that wait for a shared resource, by resource."
        case .fileWorkWaiting: "Operations on files that wait for a thread."
        case .startTime: "When the receiver started, in seconds since 1970."
        }
    }
}
