package import HTTPTypes
package import PostcardClient
package import PostcardFoundation

/// Sends files while the app is suspended or closed: a background `URLSession`, or in tests a simulation of the
/// system's transfer daemon.
///
/// The service reports events. ``QueueMachine`` decides what to do after each event.
package protocol TransferService: Sendable {
    /// Connects this process to the service. Events of transfers that ended while no process was connected are reported
    /// soon after. The method is called again after ``AttemptEvent/invalidated(_:)``, for a new session.
    ///
    /// - Parameters:
    ///   - report: Called with each event in turn. Returns at once.
    ///   - freshFields: Called when a transfer with an earliest time is about to begin. Returns new header fields for
    ///     the transfer, or `nil` to keep its header fields.
    func connect(
        _ report: @escaping @Sendable (AttemptEvent) -> Void,
        freshFields: @escaping @Sendable (AttemptID) async -> HTTPFields?
    ) async throws

    /// The identifiers of transfers. The value is `true` if the transfer has ended but its end was not reported yet,
    /// and `false` if it has not ended.
    func transfers() async throws -> [AttemptID: Bool]

    /// Begins a transfer, which then continues without this process.
    func begin(_ transfer: Transfer) async throws

    /// Cancels transfers, in one pass over all transfers that have not ended. The cancelled transfers then end as
    /// interrupted.
    func cancel(_ ids: Set<AttemptID>) async

    /// Cancels transfers in one pass, so that their uploads can continue later.
    ///
    /// - Returns: The resume data for the next transfers of these uploads. There is none for an upload that must start
    ///   over, because nothing was sent yet or the server does not support resuming.
    func pause(_ ids: Set<AttemptID>) async -> [AttemptID: Data]

    /// Disconnects this process. Transfers continue. The process may keep the session.
    func disconnect() async

    /// Disconnects this process and gives up the session, so that another process can use it. It is called when the end
    /// of no open transfer matters.
    func release() async
}

/// One attempt to upload a file.
package struct Transfer: Sendable {
    package let id: AttemptID
    package let upload: QueuedUpload.ID
    package let url: URL
    package let method: HTTPRequest.Method
    /// All header fields of the request except `Content-Length`.
    package let headerFields: HTTPFields
    /// The file with the whole body.
    package let body: URL
    /// The body's length, in bytes.
    package let length: Int64
    /// The earliest time to begin the transfer, or `nil` to begin at once.
    package let earliestBegin: Date?
    package let networks: AllowedNetworks
    /// The priority among the uploads of the queue. The default priority is 0.
    package let priority: Int
    /// The resume data that ``TransferService/pause(_:)`` returned or the service reported for an earlier transfer;
    /// `nil` to send the whole body. If the service cannot use it, it sends the whole body too.
    package let resumeData: Data?

    /// The priority of the system's task, from 0 to 1. The priority 0 becomes the system's default, 0.5; 1 and -1
    /// become the system's high and low priorities, 0.75 and 0.25.
    package var taskPriority: Float {
        let priority = Float(priority)
        return 0.5 + 0.5 * priority / (1 + abs(priority))
    }
}
