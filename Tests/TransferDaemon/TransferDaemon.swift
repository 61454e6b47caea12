import Foundation
import PostcardTestSupport

/// The model of the system's transfer daemon, as a process of its own.
///
/// ```swift
/// let daemon = try await TransferDaemon(.init(duplicate: 1), seed: 7)
/// let queue = try UploadQueue(directory: folder, session: session, service: daemon.service())
/// ```
package final class TransferDaemon: Sendable {
    /// What goes wrong. Shares are from 0 to 1, times are in seconds.
    package struct Options: Sendable, Encodable {
        /// The share of events that are delivered twice.
        package var duplicate = 0.0
        /// The share of attempts whose connection breaks. The daemon tries the same transfer again by itself.
        package var drop = 0.0
        /// The longest time that chance holds back an event.
        package var eventDelay = 0.0
        /// The longest time that chance holds back a launch of the app.
        package var relaunchDelay = 0.0
        /// Whether events are delivered before the process has asked for the session's transfers; `nil` leaves that to
        /// chance.
        package var eager: Bool?
        /// How long a transfer is tried on connections that break, or do not come about.
        package var resourceTimeout = 2.0
        package var connectionsPerHost = 3
        /// The first delay of transfers that begin after a launch in the background; it doubles with each launch.
        package var rateLimit = 0.0
        /// The longest such delay.
        package var longestRateLimit = 1.0
        fileprivate var seed: UInt64 = 0

        package init() {}
    }

    /// How the daemon is.
    package struct Status: Sendable {
        /// How often something has happened.
        package let counters: [String: Int]
        /// Whether nothing more happens by itself.
        package let isResting: Bool
        /// Whether a process of the app is running.
        package let isRunning: Bool
        /// Whether a process is connected.
        package let isConnected: Bool
        /// The transfers that have not ended, or whose end has not been reported.
        package let transfers: [String]
        /// Processes of the app that have ended with an error, and what they wrote.
        package let failures: [String]

        package subscript(counter: Counter) -> Int { counters[counter.rawValue] ?? 0 }
    }

    /// What the daemon counts.
    package enum Counter: String, Sendable {
        /// Transfers handed over, and attempts to carry them.
        case begun, started, retried
        /// Transfers that have ended, those that ended by being cancelled, and those that were lost.
        case ended, cancelled, lost
        /// Ends of transfers that a process was given.
        case acknowledged
        /// All of: begun, started, ended, acknowledged.
        case progress
        case redirected, connects, disconnects
        /// Processes of the app: all, those that the user opened, and those that the system launched.
        case launches, opens, backgroundLaunches
        case exits, killed, forceQuits
    }

    /// When a transfer is lost.
    package enum Loss: String, Sendable {
        case atOnce = "at-once"
        /// When the server has answered. The app is not notified.
        case answered
    }

    /// The longest that a test waits for the daemon, in seconds: a hang is a failure.
    private static let patience = 120.0

    /// Where the daemon listens.
    package let socket: String
    private let folder: TemporaryFolder
    private let process: RunningServer
    private let connection: DaemonConnection

    /// Starts a daemon.
    ///
    /// - Parameters:
    ///   - options: What goes wrong. Defaults to nothing.
    ///   - seed: What chance begins with. Defaults to 0.
    ///   - app: The program that the daemon launches, and its arguments. Defaults to none: the app is this process.
    package init(_ options: Options = Options(), seed: UInt64 = 0, app: [String] = []) async throws {
        folder = try TemporaryFolder()
        socket = folder.url.appending(path: "daemon").path
        var options = options
        options.seed = seed
        let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "daemon.py")
        process = try await RunningServer(
            [
                "python3", script.path, socket, "--app", try Self.json(app), "--options", try Self.json(options),
            ], of: URL(filePath: "/usr/bin/env"))
        connection = try DaemonConnection(to: socket) { _ in }
    }

    deinit {
        connection.close()
    }

    private static func json(_ value: some Encodable) throws -> String {
        String(decoding: try JSONEncoder().encode(value), as: UTF8.self)
    }

    /// The session of this process.
    ///
    /// - Parameter isWakeUp: Whether the system has launched the app for the session's events. Defaults to `false`.
    package func service(isWakeUp: Bool = false) -> DaemonTransferService {
        DaemonTransferService(socket: socket, isWakeUp: isWakeUp)
    }

    // MARK: - What a user and the system do

    /// Opens the app, in the foreground; when its process in the background has ended, if there is one.
    @discardableResult package func open() async throws -> Status {
        try await command("open")
    }

    /// Kills the app and, if there is a share, loses some transfers, as a crash of the system does.
    @discardableResult package func kill(losing share: Double = 0) async throws -> Status {
        try await command("kill") { $0.lost = share }
    }

    /// Kills a process of the app, which the user has just opened if there was none.
    @discardableResult package func launchAndKill() async throws -> Status {
        try await command("launch-and-kill")
    }

    /// Quits the app as a user does: its transfers are cancelled, and it is launched only when the user opens it.
    @discardableResult package func forceQuit() async throws -> Status {
        try await command("force-quit")
    }

    /// Loses transfers, by default all of them. The app is not notified.
    @discardableResult package func lose(_ loss: Loss, share: Double = 1) async throws -> Status {
        try await command("lose") { command in
            command.lost = share
            command.when = loss.rawValue
        }
    }

    /// Switches the network on or off.
    @discardableResult package func setNetwork(isUp: Bool) async throws -> Status {
        try await command("network") { $0.network = ["up": isUp] }
    }

    // MARK: - Waiting

    package func status() async throws -> Status {
        try await command("status")
    }

    /// Waits until something has happened a number of times since the daemon started.
    @discardableResult package func wait(for counter: Counter, atLeast count: Int) async throws -> Status {
        try await command("wait") { command in
            command.counter = counter.rawValue
            command.atLeast = count
            command.within = Self.patience
        }
    }

    /// Waits until the process of the app that is running has connected or ended.
    package func waitForConnection() async throws {
        let status = try await status()
        guard status.isRunning, !status.isConnected else { return }
        _ = try await command("wait") { command in
            command.counter = Counter.connects.rawValue
            command.atLeast = status[.connects] + 1
            command.orGone = true
            command.within = Self.patience
        }
    }

    /// Lets some things happen, and then lets some time pass, in seconds. It does not wait long for what does not happen.
    @discardableResult package func letHappen(_ count: Int, then seconds: Double) async throws -> Status {
        let status = try await status()
        return try await command("wait") { command in
            command.counter = Counter.progress.rawValue
            command.atLeast = status[.progress] + count
            command.orResting = true
            command.within = 0.5
            command.mayPass = true
            command.then = seconds
        }
    }

    /// Waits until nothing more happens by itself: no process runs, and no transfer is carried.
    @discardableResult package func waitUntilResting() async throws -> Status {
        try await command("wait") { $0.within = Self.patience }
    }

    private func command(_ name: String, _ fill: (inout DaemonCommand) -> Void = { _ in }) async throws -> Status {
        var command = DaemonCommand(name)
        fill(&command)
        let answer = try await connection.command(command)
        return Status(
            counters: answer.counters ?? [:], isResting: answer.isResting ?? false,
            isRunning: answer.isRunning ?? false, isConnected: answer.isConnected ?? false,
            transfers: answer.transfers ?? [], failures: answer.failures ?? [])
    }
}
