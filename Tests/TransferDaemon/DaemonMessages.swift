import Foundation

/// A command of the app or of a test to the daemon.
struct DaemonCommand: Encodable {
    let `do`: String
    var number: Int?
    /// Whether the system has launched the process for the session's events.
    var isBackground: Bool?
    /// The identifier of the session that the process connects to.
    var session: String?
    /// The name of the process.
    var process: String?
    /// The description of the transfer's identifier.
    var id: String?
    /// The same of several transfers.
    var ids: [String]?
    var url: String?
    var method: String?
    var fields: [[String]]?
    var file: String?
    var length: Int64?
    /// The time until the transfer may begin, in seconds.
    var delay: Double?
    var networks: [String: Bool]?
    /// What the transfer resumes with.
    var resumeData: Data?
    /// Whether the process begins a transfer although it knows that the session has ended.
    var knowsEnd: Bool?
    /// The daemon's number for a transfer.
    var transfer: Int?
    /// The process's number for an activity.
    var activity: Int?
    /// The share of transfers to lose, and when.
    var lost: Double?
    var when: String?
    /// Why the system cancels transfers or ends the session.
    var reason: String?
    var network: [String: Bool]?
    /// What a captive portal answers.
    var portal: String?
    /// Whether connections can be made, and whether the system can store responses.
    var isReachable: Bool?
    var isStored: Bool?
    /// The time, in seconds, if the test sets it.
    var now: Double?
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

/// A response or an event of the daemon.
struct DaemonMessage: Decodable, Sendable {
    /// The number of the command that this is the response to.
    var response: Int?
    var error: String?
    var event: String?
    var id: String?
    var bytes: Int64?
    var data: Data?
    /// What the upload of a transfer that was cancelled can resume with.
    var resumeData: Data?
    /// The same for several transfers, by their identifiers.
    var resumable: [String: Data]?
    /// The daemon's number for the transfer that has ended, or the process's for an activity.
    var number: Int?
    /// Whether the process has the activity that it asked for.
    var granted: Bool?
    var end: String?
    var reason: String?
    var status: Int?
    var fields: [[String]]?
    var url: String?
    var method: String?
    var code: String?
    /// Whether the system could not store the response.
    var isUnstored: Bool?
    /// The system's number for why the session has ended.
    var systemCode: Int?
    var message: String?
    /// The transfers that have not ended or whose end has not been reported. The latter are also in ``ended``.
    var transfers: [String]?
    var ended: [String]?
    var counters: [String: Int]?
    var isResting: Bool?
    var isSettled: Bool?
    var active: Int?
    var isRunning: Bool?
    var isConnected: Bool?
    var waking: [String]?
    var failures: [String]?
}
