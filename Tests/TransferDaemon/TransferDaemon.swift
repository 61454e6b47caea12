package import Foundation
import PostcardTestSupport

/// A model of the system's transfer daemon, in a separate process.
///
/// ```swift
/// let daemon = try await TransferDaemon(.init(duplicate: 1), seed: 7)
/// let queue = UploadQueue(directory: folder, session: session, service: daemon.service())
/// ```
package final class TransferDaemon: Sendable {
    /// The faults to simulate. Shares are from 0 to 1, and times are in seconds.
    package struct Options: Sendable, Encodable {
        /// The share of events that are delivered twice.
        package var duplicate = 0.0
        /// The share of attempts whose connection breaks. The daemon retries the transfer by itself.
        package var drop = 0.0
        /// The maximum random delay of an event.
        package var eventDelay = 0.0
        /// The maximum random delay of a launch of the app.
        package var relaunchDelay = 0.0
        /// Whether events are delivered before the process has asked for the session's transfers. `nil` means at
        /// random.
        package var eager: Bool?
        /// How long a transfer is retried on connections that break or fail.
        package var resourceTimeout = 2.0
        package var connectionsPerHost = 3
        /// The number of open transfers with which nothing is sent any more.
        package var stallsAbove = 1000
        /// How long it takes to begin a transfer, for each one that is open.
        package var creation = 0.0
        /// The first delay of transfers that begin after a launch in the background. It doubles with each launch.
        package var rateLimit = 0.0
        /// The maximum of this delay.
        package var longestRateLimit = 1.0
        /// How long a process may take to make another request of a delayed transfer.
        package var requestPatience = 1.0
        /// How long a process may take for the events for which it was woken.
        package var wakeUpBudget = 60.0
        /// Whether the connection of each attempt that ``drop`` applies to breaks once, in the middle of the body.
        package var dropsOnce = false
        /// Whether the system resumes uploads by itself, with servers that support it.
        package var resumes = false
        /// The number of transfers, the first ones, that stop in the middle until they are cancelled.
        package var holds = 0
        /// Whether the end of a transfer that cannot be resumed is the response about its upload resource, and not an
        /// error.
        package var respondsToLostResources = false
        /// Whether the system keeps a second name of each file instead of a copy.
        package var linksFiles = false
        /// The share of responses of success that the system cannot store, because the device is locked.
        package var unstored = 0.0
        /// How long a connection may be idle.
        package var requestTimeout = 30.0
        /// Whether time passes only with ``TransferDaemon/setTime(_:)``, and a broken transfer is not retried.
        package var manualTime = false
        fileprivate var seed: UInt64 = 0

        package init() {}
    }

    /// The state of the daemon.
    package struct Status: Sendable {
        /// How often each thing has happened.
        package let counters: [String: Int]
        /// Whether nothing happens until a test does something.
        package let isResting: Bool
        /// Whether the model does nothing more before the servers, a process or the test do something.
        package let isSettled: Bool
        /// The number of transfers that are being sent.
        package let active: Int
        /// Whether a process of the app is running.
        package let isRunning: Bool
        /// Whether a process is connected.
        package let isConnected: Bool
        /// The sessions for which the system would wake the app.
        package let waking: [String]
        /// The transfers that have not ended or whose end has not been reported.
        package let transfers: [String]
        /// The transfers that have not ended.
        package let open: Set<String>
        /// The errors of the app's processes that failed.
        package let failures: [String]

        package subscript(counter: Counter) -> Int { counters[counter.rawValue] ?? 0 }
    }

    /// What the daemon counts.
    package enum Counter: String, Sendable {
        /// Transfers handed over, and attempts to send them.
        case handedOver, started, retried
        /// Transfers that have ended, were cancelled, or were lost.
        case ended, cancelled, lost
        /// Ends of transfers that a process has received.
        case acknowledged
        /// The sum of handedOver, started, ended and acknowledged.
        case progress
        case redirected, connects, disconnects
        /// Connections to sessions that another process has, and sessions that were given up.
        case refused, released
        /// Processes of the app: all, opened by the user, and launched by the system.
        case launches, opens, backgroundLaunches
        case exits, killed, forceQuits
        /// Processes that were suspended, woken for events, ended because of a lock, and ended because they took too
        /// long for events.
        case suspended, woken, killedWithLock, overran
        /// Transfers that asked for credentials, and uploads that were resumed: by the system itself or after a pause.
        case challenged, resumed
        /// Transfers that stopped in the middle, that were paused, and that began with what a pause returned.
        case held, paused, begunAgain
        /// Bytes of bodies that were sent, by all attempts.
        case bytesSent
        /// Sessions that the system has ended.
        case invalidated
        /// Processes that were asked for another request of a delayed transfer.
        case asked
        /// Transfers that ended while no process had their session, that a portal answered, and whose response the
        /// system could not store.
        case endedUnseen, intercepted, unstored
        /// The largest number of transfers that were open at a time.
        case mostOpen
    }

    /// Why the system cancels transfers.
    package enum CancellationReason: String, Sendable, CaseIterable {
        case forceQuit = "force-quit"
        case updatesDisabled = "updates-disabled"
        case insufficientResources = "insufficient-resources"

        /// The value of `NSURLErrorBackgroundTaskCancelledReasonKey`.
        var code: Int {
            switch self {
            case .forceQuit: 0
            case .updatesDisabled: 1
            case .insufficientResources: 2
            }
        }
    }

    /// What a captive portal answers in place of all servers.
    package enum Portal: String, Sendable, CaseIterable {
        /// The handshake with it fails.
        case tls
        /// The status 511 (Network Authentication Required).
        case status511 = "511"
        /// Its page, with the status 200.
        case html
    }

    /// When a transfer is lost.
    package enum Loss: String, Sendable {
        case atOnce = "at-once"
        /// After the server has responded. The app is not notified.
        case answered
    }

    /// The maximum time that a test waits for the daemon, in seconds. A hang is a failure.
    private static let patience = 300.0

    /// The path of the socket on which the daemon listens.
    package let socket: String
    private let folder: TemporaryFolder
    private let process: RunningServer
    private let connection: DaemonConnection

    /// Starts a daemon.
    ///
    /// - Parameters:
    ///   - options: The faults to simulate. Defaults to none.
    ///   - seed: The seed of the random numbers. Defaults to 0.
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

    /// A session of this process.
    ///
    /// - Parameter isWakeUp: Whether the system launched the app for the session's events. Defaults to `false`.
    package func service(isWakeUp: Bool = false) -> DaemonTransferService {
        DaemonTransferService(socket: socket, isWakeUp: isWakeUp)
    }

    /// A process of the app or of an extension, which lives until the test ends it.
    ///
    /// - Parameter name: The name of the process. Defaults to the app.
    package func process(_ name: String = DaemonProcess.app) -> DaemonProcess {
        DaemonProcess(name, socket: socket)
    }

    // MARK: - The user and the system

    /// Opens the app in the foreground, after its process in the background has ended.
    @discardableResult package func open() async throws -> Status {
        try await command("open")
    }

    /// Kills the app. With a share, it also loses transfers, as a crash of the system does.
    @discardableResult package func kill(losing share: Double = 0) async throws -> Status {
        try await command("kill") { $0.lost = share }
    }

    /// Kills a process of the app. If there is none, the user opens the app first.
    @discardableResult package func launchAndKill() async throws -> Status {
        try await command("launch-and-kill")
    }

    /// Suspends the app when its activities have ended. It runs again when the user opens it, and when all its transfers
    /// have ended.
    @discardableResult package func suspend() async throws -> Status {
        try await command("suspend")
    }

    /// Suspends a process of the app. If there is none, or it ends by itself, the user opens the app.
    @discardableResult package func launchAndSuspend() async throws -> Status {
        try await command("launch-and-suspend")
    }

    /// Restarts the device, which hides the app's files.
    ///
    /// - Parameter directory: The directory of the app's queue.
    @discardableResult package func lockDevice(hiding directory: URL) async throws -> Status {
        try await command("lock") { $0.file = directory.path }
    }

    /// Unlocks the device.
    @discardableResult package func unlockDevice() async throws -> Status {
        try await command("unlock")
    }

    /// Force-quits the app: its transfers are cancelled, and it is not launched until the user opens it.
    @discardableResult package func forceQuit() async throws -> Status {
        try await command("force-quit")
    }

    /// Loses transfers. The app is not notified.
    @discardableResult package func lose(_ loss: Loss, share: Double = 1) async throws -> Status {
        try await command("lose") { command in
            command.lost = share
            command.when = loss.rawValue
        }
    }

    /// Cancels all transfers, as the system does for a reason of its own.
    @discardableResult package func cancelAll(_ reason: CancellationReason) async throws -> Status {
        try await command("cancel-all") { $0.reason = reason.rawValue }
    }

    /// Forgets the upload resources of all paused transfers, as a server does after a day.
    @discardableResult package func loseResources() async throws -> Status {
        try await command("lose-resources")
    }

    /// Ends the session of the connected process, which loses its transfers.
    @discardableResult package func invalidate() async throws -> Status {
        try await command("invalidate") { $0.reason = "the system ended it" }
    }

    /// Lets the time of all delayed transfers come.
    @discardableResult package func beginDelayed() async throws -> Status {
        try await command("begin-delayed")
    }

    /// Switches the network on or off.
    ///
    /// - Parameter isCellular: Whether it is a cellular network. Defaults to `false`.
    @discardableResult package func setNetwork(isUp: Bool, isCellular: Bool = false) async throws -> Status {
        try await command("network") { $0.network = ["up": isUp, "cellular": isCellular] }
    }

    /// Has a captive portal answer in place of all servers.
    ///
    /// - Parameter portal: What it answers; `nil` if the user has signed in.
    @discardableResult package func setPortal(_ portal: Portal?) async throws -> Status {
        try await command("portal") { $0.portal = portal?.rawValue }
    }

    /// Lets the app run in the background that ``suspend()`` has suspended, because all its transfers have ended.
    @discardableResult package func wake() async throws -> Status {
        try await command("wake")
    }

    /// Sets the time, if it is manual.
    @discardableResult package func setTime(_ seconds: Double) async throws -> Status {
        try await command("time") { $0.now = seconds }
    }

    /// Lets connections be made or fail.
    @discardableResult package func setServers(areReachable: Bool) async throws -> Status {
        try await command("reach") { $0.isReachable = areReachable }
    }

    /// Lets the system store responses of success or not, as on a locked device.
    @discardableResult package func setResponses(areStored: Bool) async throws -> Status {
        try await command("store") { $0.isStored = areStored }
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

    /// Waits until the running process of the app has connected or ended.
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

    /// Waits until a number of things have happened, at most half a second, and then for a time in seconds.
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

    /// Waits until nothing happens by itself: no process runs, and no transfer is being sent.
    @discardableResult package func waitUntilResting() async throws -> Status {
        try await command("wait") { $0.within = Self.patience }
    }

    private func command(_ name: String, _ fill: (inout DaemonCommand) -> Void = { _ in }) async throws -> Status {
        var command = DaemonCommand(name)
        fill(&command)
        let response = try await connection.command(command)
        let ended = Set(response.ended ?? [])
        return Status(
            counters: response.counters ?? [:], isResting: response.isResting ?? false,
            isSettled: response.isSettled ?? false, active: response.active ?? 0,
            isRunning: response.isRunning ?? false, isConnected: response.isConnected ?? false,
            waking: response.waking ?? [], transfers: response.transfers ?? [],
            open: Set(response.transfers ?? []).subtracting(ended), failures: response.failures ?? [])
    }
}
