import Foundation

/// A command for the daemon, of the app or of a test.
struct DaemonCommand: Encodable {
    let `do`: String
    var number: Int?
    /// Whether the system has launched the process for the session's events.
    var isBackground: Bool?
    /// The transfer's identifier, as its description.
    var id: String?
    var url: String?
    var method: String?
    var fields: [[String]]?
    var file: String?
    var length: Int64?
    /// The seconds until the transfer may begin.
    var delay: Double?
    var networks: [String: Bool]?
    /// The daemon's own number of a transfer.
    var transfer: Int?
    /// The share of transfers that are lost, and when.
    var lost: Double?
    var when: String?
    var network: [String: Bool]?
    var counter: String?
    var atLeast: Int?
    var orResting: Bool?
    var orGone: Bool?
    var within: Double?
    var mayPass: Bool?
    var then: Double?

    init(_ do: String) {
        self.do = `do`
    }
}

/// An answer or an event of the daemon.
struct DaemonMessage: Decodable, Sendable {
    /// The number of the command that is answered.
    var answer: Int?
    var error: String?
    var event: String?
    var id: String?
    var bytes: Int64?
    var data: Data?
    /// The daemon's own number of the transfer that has ended.
    var number: Int?
    var end: String?
    var reason: String?
    var status: Int?
    var fields: [[String]]?
    var url: String?
    var method: String?
    var code: String?
    var message: String?
    /// The transfers that have not ended or whose end has not been reported, and the latter again.
    var transfers: [String]?
    var ended: [String]?
    var counters: [String: Int]?
    var isResting: Bool?
    var isRunning: Bool?
    var isConnected: Bool?
    var failures: [String]?
}
