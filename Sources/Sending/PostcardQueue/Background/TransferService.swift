package import HTTPTypes
package import PostcardClient
package import PostcardFoundation

/// Sends files while the app is suspended or closed: a background `URLSession`, or in tests a model of the system's
/// transfer daemon.
///
/// The service reports events. ``QueueMachine`` decides what follows from them.
package protocol TransferService: Sendable {
    /// Connects this process. Events of transfers that ended while no process was connected are reported soon after.
    /// Called again after ``AttemptEvent/invalidated(_:)``, for a new session.
    ///
    /// - Parameters:
    ///   - report: Called with each event in turn. Returns at once.
    ///   - freshFields: Called before a transfer begins that was to begin later. Returns header fields in place of
    ///     those that it was begun with, or `nil` to keep them.
    func connect(
        _ report: @escaping @Sendable (AttemptEvent) -> Void,
        freshFields: @escaping @Sendable (AttemptID) async -> HTTPFields?
    ) async throws

    /// The transfers that have not ended, with `false`, and those whose end has not been reported yet, with `true`.
    func transfers() async throws -> [AttemptID: Bool]

    /// Begins a transfer, which from then on does not need this process.
    func begin(_ transfer: Transfer) async throws

    /// Cancels transfers, in one pass over those that have not ended. They then end as interrupted.
    func cancel(_ ids: Set<AttemptID>) async

    /// Cancels transfers whose uploads are to continue later, in one pass.
    ///
    /// - Returns: What the next transfers of these uploads can resume with. Missing for those that must start over:
    ///   nothing was sent yet, or the server does not support resuming.
    func pause(_ ids: Set<AttemptID>) async -> [AttemptID: Data]

    /// Disconnects this process. Transfers continue. The process may keep the session.
    func disconnect() async

    /// Disconnects this process and gives up the session, so that another process can use it. Called when no transfer is
    /// open whose end matters.
    func release() async
}

/// One attempt to upload a file.
package struct Transfer: Sendable {
    package let id: AttemptID
    package let upload: QueuedUpload.ID
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
    /// The priority among the uploads of the queue. 0 is the usual one.
    package let priority: Int
    /// What the transfer resumes with: what ``TransferService/pause(_:)`` returned for an earlier one, or the service
    /// reported. `nil` to send the whole body. A service that cannot use it sends the whole body as well.
    package let resumeData: Data?

    /// The priority of the system's task, from 0 to 1. The usual one is 0.5, and 1 and -1 are the system's high and low
    /// ones: 0.75 and 0.25.
    package var taskPriority: Float {
        let priority = Float(priority)
        return 0.5 + 0.5 * priority / (1 + abs(priority))
    }
}
