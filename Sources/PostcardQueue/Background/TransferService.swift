package import HTTPTypes
package import PostcardClient

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// What carries uploads while the app is suspended or gone: a background `URLSession`, or in tests a model of the system's
/// transfer daemon.
///
/// It takes files and gives back events. Everything that follows from an event is decided in ``BackgroundOutbox``.
package protocol TransferService: Sendable {
    /// Connects this process. Events of transfers that ended while no process was connected are reported soon after.
    ///
    /// - Parameter report: Called with one event after the other; returns at once.
    func connect(_ report: @escaping @Sendable (TransferEvent) -> Void) async throws

    /// The transfers that have not ended, or whose end has not been reported yet; `true` for the latter.
    func transfers() async throws -> [Transfer.ID: Bool]

    /// Hands a transfer over. It goes on from here on without this process.
    func begin(_ transfer: Transfer) async throws

    /// Ends a transfer, which then reports that it was cancelled. One that has ended already stays ended.
    func cancel(_ id: Transfer.ID) async

    /// Disconnects this process; transfers go on.
    func disconnect() async
}

/// One attempt to upload a file.
package struct Transfer: Sendable {
    /// Identifies an attempt in every process: the upload's identifier, and which attempt of it this is.
    package struct ID: Sendable, Hashable, LosslessStringConvertible {
        package let upload: UUID
        package let attempt: Int

        package init(upload: UUID, attempt: Int) {
            self.upload = upload
            self.attempt = attempt
        }

        /// Reads what ``description`` writes, such as a task's description; `nil` for anything else.
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
    /// All header fields but `Content-Length`.
    package let headerFields: HTTPFields
    /// The file that holds the whole body.
    package let body: URL
    /// The number of bytes of the body.
    package let length: Int64
    /// The earliest time to begin; at once if it is `nil`.
    package let earliestBegin: Date?
    package let networks: AllowedNetworks
}

/// What a transfer service reports. Events may come late, more than once, and after the upload was cleared.
package enum TransferEvent: Sendable {
    /// How many of the body's bytes have been sent so far.
    case sent(Transfer.ID, bytes: Int64)
    /// Some bytes of the response's body.
    case received(Transfer.ID, Data)
    /// The transfer has ended.
    case ended(Transfer.ID, TransferEnd)
    /// All events that the process was woken for have been reported.
    case deliveredAll
}

/// How a transfer ended.
package enum TransferEnd: Sendable {
    /// A server answered.
    ///
    /// - Parameters:
    ///   - status: The response's status.
    ///   - headerFields: The response's header fields.
    ///   - url: The address that answered, after the redirects that the service followed.
    ///   - method: The method of the request that was answered, if it is known.
    ///   - bytesSent: How many bytes of the body were sent, if it is known.
    case response(
        status: Int, headerFields: HTTPFields, url: URL?, method: HTTPRequest.Method?, bytesSent: Int64? = nil)
    /// The transfer was cancelled: by this program, by the user, or because the user force-quit the app.
    case cancelled
    /// No response came.
    case failed(UploadError)
}
