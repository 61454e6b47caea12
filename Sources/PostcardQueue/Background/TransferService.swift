package import HTTPTypes
package import PostcardClient

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// Sends files while the app is suspended or closed: a background `URLSession`, or in tests a model of the system's
/// transfer daemon.
///
/// It reports events. ``TransferLoop`` decides what follows from them.
package protocol TransferService: Sendable {
    /// Connects this process. Events of transfers that ended while no process was connected are reported soon after.
    ///
    /// - Parameter report: Called with each event in turn. Returns at once.
    func connect(_ report: @escaping @Sendable (TransferEvent) -> Void) async throws

    /// The transfers that have not ended, with `false`, and those whose end has not been reported yet, with `true`.
    func transfers() async throws -> [Transfer.ID: Bool]

    /// Begins a transfer, which from then on does not need this process.
    func begin(_ transfer: Transfer) async throws

    /// Cancels a transfer, which then ends as ``TransferEnd/cancelled``. Does nothing if it has ended.
    func cancel(_ id: Transfer.ID) async

    /// Disconnects this process. Transfers continue.
    func disconnect() async
}

/// One attempt to upload a file.
package struct Transfer: Sendable {
    /// Identifies a transfer across processes: the upload's UUID, and the number of the attempt, from 1.
    package struct ID: Sendable, Hashable, LosslessStringConvertible {
        package let upload: UUID
        package let attempt: Int

        package init(upload: UUID, attempt: Int) {
            self.upload = upload
            self.attempt = attempt
        }

        /// Reads an identifier from the form that ``description`` has, or returns `nil`.
        package init?(_ description: String) {
            let words = description.split(separator: " ", omittingEmptySubsequences: false)
            guard words.count == 2, let upload = UUID(uuidString: String(words[0])), let attempt = Int(words[1]),
                attempt > 0
            else { return nil }
            self.init(upload: upload, attempt: attempt)
        }

        package var description: String { "\(upload.uuidString) \(attempt)" }
    }

    package let id: ID
    package let url: URL
    package let method: HTTPRequest.Method
    /// All header fields except `Content-Length`.
    package let headerFields: HTTPFields
    /// The file with the whole body.
    package let body: URL
    /// The body's length, in bytes.
    package let length: Int64
    /// The earliest time to begin, or `nil` to begin at once.
    package let earliestBegin: Date?
    package let networks: AllowedNetworks
}

/// An event of a transfer service. Events may arrive late, more than once, and after the upload was cleared.
package enum TransferEvent: Sendable {
    /// The number of the body's bytes sent so far.
    case sent(Transfer.ID, bytes: Int64)
    /// The next bytes of the response's body.
    case received(Transfer.ID, Data)
    /// The transfer has ended.
    case ended(Transfer.ID, TransferEnd)
    /// The service has reported all events for which the system woke the app.
    case deliveredAll
}

/// How a transfer ended.
package enum TransferEnd: Sendable {
    /// A server responded.
    ///
    /// - Parameters:
    ///   - status: The response's status.
    ///   - headerFields: The response's header fields.
    ///   - url: The URL that responded, after redirects.
    ///   - method: The method of the last request, or `nil` if it is not known.
    ///   - bytesSent: The number of the body's bytes that were sent, or `nil` if it is not known.
    case response(
        status: Int, headerFields: HTTPFields, url: URL?, method: HTTPRequest.Method?, bytesSent: Int64? = nil)
    /// The transfer was cancelled, by the app or because the user force-quit it.
    case cancelled
    /// There was no response.
    case failed(UploadError)
}
