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
/// The service reports events. ``QueueMachine`` decides what follows from them.
package protocol TransferService: Sendable {
    /// Connects this process. Events of transfers that ended while no process was connected are reported soon after.
    ///
    /// - Parameter report: Called with each event in turn. Returns at once.
    func connect(_ report: @escaping @Sendable (AttemptEvent) -> Void) async throws

    /// The transfers that have not ended, with `false`, and those whose end has not been reported yet, with `true`.
    func transfers() async throws -> [AttemptID: Bool]

    /// Begins a transfer, which from then on does not need this process.
    func begin(_ transfer: Transfer) async throws

    /// Cancels a transfer, which then ends as ``AttemptEnd/cancelled``. Does nothing if it has ended.
    func cancel(_ id: AttemptID) async

    /// Disconnects this process. Transfers continue.
    func disconnect() async
}

/// One attempt to upload a file.
package struct Transfer: Sendable {
    package let id: AttemptID
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
