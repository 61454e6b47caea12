package import HTTPTypes
package import PostcardClient
package import PostcardFoundation

/// Sends files while the app is suspended or closed. It is a background `URLSession`, or in tests a simulation of the
/// system's transfer daemon. ``QueueMachine`` decides what to do after the service's events.
package protocol TransferService: Sendable {
    /// Connects this process to the service, which then reports the events of transfers that ended before. The method
    /// is called again after ``AttemptEvent/invalidated(_:)``, for a new session.
    ///
    /// - Parameters:
    ///   - report: Called with each event in turn. Returns at once.
    ///   - freshFields: Called when a transfer with an earliest time begins. Returns new header fields for the
    ///     transfer, or `nil` to keep its header fields.
    func connect(
        _ report: @escaping @Sendable (AttemptEvent) -> Void,
        freshFields: @escaping @Sendable (AttemptID) async -> HTTPFields?
    ) async throws

    /// The identifiers of all transfers. `true` means that the transfer has ended, but its end was not reported yet.
    func transfers() async throws -> [AttemptID: Bool]

    /// Begins a transfer, which then continues without this process.
    func begin(_ transfer: Transfer) async throws

    /// Cancels transfers in one pass over all open transfers. The cancelled transfers end as interrupted.
    func cancel(_ ids: Set<AttemptID>) async

    /// Cancels transfers in one pass, so that their uploads can continue later.
    ///
    /// - Returns: The resume data for the next transfers of these uploads. An upload has none if it must start over,
    ///   because nothing was sent yet or the server does not support resuming.
    func pause(_ ids: Set<AttemptID>) async -> [AttemptID: Data]

    /// Disconnects this process, whose transfers continue. The process may keep the session.
    func disconnect() async

    /// Disconnects this process and gives up the session for another process. The process then needs no reports of how
    /// open transfers end.
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
    /// The priority among the queue's uploads. Defaults to 0.
    package let priority: Int
    /// The resume data from ``TransferService/pause(_:)`` or from an event of an earlier transfer. `nil` to send the
    /// whole body, which also happens if the service cannot use the data.
    package let resumeData: Data?

    /// The priority of the system's task, from 0 to 1. Priority 0 becomes the system's default, 0.5. Priorities 1 and
    /// -1 become the system's high and low priorities, 0.75 and 0.25.
    package var taskPriority: Float {
        let priority = Float(priority)
        return 0.5 + 0.5 * priority / (1 + abs(priority))
    }
}
