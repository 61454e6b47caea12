package import Foundation
package import HTTPTypes
import PostcardClient
package import PostcardQueue
import Synchronization

/// A session with the tests' transfer daemon, which corresponds to a background session.
package final class DaemonTransferService: TransferService {
    private struct State {
        var connection: DaemonConnection?
        /// The number of the connection. An earlier one may be closed after a later one was opened.
        var number = 0
        /// The transfers whose end was reported to this process. The daemon may not have the acknowledgment yet.
        var reported: Set<String> = []
        /// The URLs of transfers, for errors.
        var addresses: [String: URL] = [:]
        /// Whether this process knows that the session has ended.
        var knowsEnd = false
        /// Makes the session again, once this process knows that it has ended.
        var reconnect: (@Sendable () async throws -> Void)?
        /// Whether the session was made again before the queue asked for that. It is not made twice: events are reported
        /// once to each session.
        var isMadeAgain = false
    }

    private let socket: String
    private let session: String
    private let process: DaemonProcess?
    private let isWakeUp: Bool
    private let daemonEnded: @Sendable () -> Void
    private let woken: @Sendable () -> Void
    private let seconds: @Sendable (Date) -> Double
    private let state = Mutex(State())

    /// Makes a service, which ``connect(_:)`` connects.
    ///
    /// - Parameters:
    ///   - socket: The path of the daemon's socket.
    ///   - session: The identifier of the session. Defaults to the app's only one.
    ///   - process: The process that has the session from now on. Defaults to `nil`: the app, until it disconnects.
    ///   - isWakeUp: Whether the system launched the process for the session's events. Defaults to `false`.
    ///   - seconds: How long the daemon waits until a date. Defaults to ``FastTime``.
    ///   - woken: Called when the system lets the suspended process run again, because of the session's events.
    ///   - daemonEnded: Called when the daemon closes the connection.
    package init(
        socket: String, session: String = "app", process: DaemonProcess? = nil, isWakeUp: Bool = false,
        seconds: @escaping @Sendable (Date) -> Double = FastTime.seconds(until:),
        woken: @escaping @Sendable () -> Void = {},
        daemonEnded: @escaping @Sendable () -> Void = {}
    ) {
        self.socket = socket
        self.session = session
        self.process = process
        self.isWakeUp = isWakeUp
        self.seconds = seconds
        self.woken = woken
        self.daemonEnded = daemonEnded
    }

    deinit {
        state.withLock { $0.connection }?.close()
    }

    package func connect(
        _ report: @escaping @Sendable (AttemptEvent) -> Void,
        freshFields: @escaping @Sendable (AttemptID) async -> HTTPFields?
    ) async throws {
        let isMade = state.withLock { state in
            defer { state.isMadeAgain = false }
            return state.isMadeAgain && state.connection != nil && !state.knowsEnd
        }
        if isMade { return }
        try await makeSession(report, freshFields)
    }

    private func makeSession(
        _ report: @escaping @Sendable (AttemptEvent) -> Void,
        _ freshFields: @escaping @Sendable (AttemptID) async -> HTTPFields?
    ) async throws {
        let number = state.withLock { state in
            state = State(number: state.number + 1, addresses: state.addresses)
            return state.number
        }
        let connection = try DaemonConnection(to: socket) { [weak self] in
            self?.receive($0, number, report, freshFields)
        } onClose: { [weak self] in
            self?.noteEnd(of: number)
        }
        state.withLock { $0.connection = connection }
        var command = DaemonCommand("connect")
        command.isBackground = isWakeUp
        command.session = session
        command.process = process?.name ?? DaemonProcess.app
        _ = try await connection.command(command)
    }

    package func transfers() async throws -> [AttemptID: Bool] {
        let response = try await connection().command(DaemonCommand("transfers"))
        let (ended, reported) = (Set(response.ended ?? []), state.withLock { $0.reported })
        var transfers: [AttemptID: Bool] = [:]
        for name in response.transfers ?? [] where !reported.contains(name) {
            if let id = AttemptID(name) { transfers[id] = ended.contains(name) }
        }
        return transfers
    }

    package func begin(_ transfer: Transfer) async throws {
        let id = transfer.id.description
        var command = DaemonCommand("begin")
        command.id = id
        command.url = transfer.url.absoluteString
        command.method = transfer.method.rawValue
        command.fields = transfer.headerFields.map { [$0.name.rawName, $0.value] }
        command.file = transfer.body.path
        command.length = transfer.length
        command.resumeData = transfer.resumeData
        command.delay = transfer.earliestBegin.map(seconds)
        command.networks = [
            "cellular": transfer.networks.cellular, "expensive": transfer.networks.expensive,
            "constrained": transfer.networks.constrained,
        ]
        state.withLock { state in
            state.addresses[id] = transfer.url
            state.reported.remove(id)
        }
        let (connection, knowsEnd) = try await currentSession()
        command.knowsEnd = knowsEnd
        _ = try await connection.command(command)
    }

    package func cancel(_ ids: Set<AttemptID>) async {
        var command = DaemonCommand("cancel")
        command.ids = ids.map(\.description)
        _ = try? await connection().command(command)
    }

    package func pause(_ ids: Set<AttemptID>) async -> [AttemptID: Data] {
        var command = DaemonCommand("pause")
        command.ids = ids.map(\.description)
        let response = try? await connection().command(command)
        var resumable: [AttemptID: Data] = [:]
        for (name, data) in response?.resumable ?? [:] { if let id = AttemptID(name) { resumable[id] = data } }
        return resumable
    }

    package func disconnect() async {
        guard let connection = state.withLock({ $0.connection.take() }) else { return }
        // Like a background session, it stays with its process.
        if let process { return process.keep(connection) }
        _ = try? await connection.command(DaemonCommand("disconnect"))
        connection.close()
    }

    package func release() async {
        guard let connection = state.withLock({ $0.connection.take() }) else { return }
        _ = try? await connection.command(DaemonCommand("release"))
        connection.close()
    }

    private func noteEnd(of number: Int) {
        let isUnexpected = state.withLock { state in
            guard state.number == number else { return false }
            return state.connection.take() != nil
        }
        if isUnexpected { daemonEnded() }
    }

    /// The connection. Like a background session that has ended, it is made again when it is next used.
    private func connection() async throws -> DaemonConnection { try await currentSession().connection }

    /// The connection, and whether this process knew that its session has ended when it chose it.
    private func currentSession() async throws -> (connection: DaemonConnection, knowsEnd: Bool) {
        if let reconnect = state.withLock({ $0.reconnect.take() }) {
            try await reconnect()
            state.withLock { $0.isMadeAgain = true }
        }
        let (connection, knowsEnd) = state.withLock { ($0.connection, $0.knowsEnd) }
        guard let connection else { throw DaemonFailure.closed }
        return (connection, knowsEnd)
    }

    // MARK: - Events

    private func receive(
        _ message: DaemonMessage, _ number: Int, _ report: @escaping @Sendable (AttemptEvent) -> Void,
        _ freshFields: @escaping @Sendable (AttemptID) async -> HTTPFields?
    ) {
        if message.event == "woken" { return woken() }
        if message.event == "delivered-all" { return report(.deliveredAll) }
        if message.event == "invalidated" {
            state.withLock { state in
                guard state.number == number else { return }
                state.knowsEnd = true
                state.reconnect = { [weak self] in try await self?.makeSession(report, freshFields) }
            }
            return report(.invalidated(SessionProblem(systemCode: message.systemCode, message.reason ?? "no reason")))
        }
        guard let name = message.id, let id = AttemptID(name) else { return }
        switch message.event {
        case "sent": report(.sent(id, bytes: message.bytes ?? 0))
        case "will-begin":
            let connection = state.withLock { $0.connection }
            Task {
                var command = DaemonCommand("continue")
                command.transfer = message.number
                command.fields = await freshFields(id)?.map { [$0.name.rawName, $0.value] }
                connection?.notify(command)
            }
        case "challenge":
            // As a background session does whose delegate performs the default handling.
            let connection = state.withLock { $0.connection }
            var command = DaemonCommand("answer")
            command.transfer = message.number
            connection?.notify(command)
        case "received": report(.received(id, message.data ?? Data()))
        case "ended":
            if let data = message.resumeData { report(.resumable(id, data)) }
            report(.ended(id, end(message)))
            let connection = state.withLock { state in
                state.reported.insert(name)
                return state.connection
            }
            // Without an acknowledgment, the daemon reports the end to the next process again.
            var command = DaemonCommand("acknowledge")
            command.transfer = message.number
            connection?.notify(command)
        default: break
        }
    }

    private func end(_ message: DaemonMessage) -> AttemptEnd {
        switch message.end {
        case "response"
        where message.isUnstored == true
            && !AttemptEnd.isArrival(status: message.status, errorDomain: "NSPOSIXErrorDomain", code: 1):
            return .failed(.connectionLost(to: URL(filePath: "/"), "the response could not be stored"))
        case "response":
            let fields = (message.fields ?? []).compactMap { field in
                HTTPField.Name(field[0]).map { HTTPField(name: $0, value: field[1]) }
            }
            return .response(
                status: message.status ?? 0, headerFields: HTTPFields(fields),
                url: message.url.flatMap(URL.init(string:)),
                method: message.method.flatMap { HTTPRequest.Method(rawValue: $0) },
                requestURL: state.withLock { $0.addresses[message.id ?? ""] })
        case "cancelled":
            let reason = message.reason.flatMap(TransferDaemon.CancellationReason.init)
            return AttemptEnd(systemCode: -999, cancellationReason: reason?.code) ?? .interrupted(.cancelled)
        default:
            let reason = message.message ?? "unknown"
            // A process that was launched later does not know the URL.
            let url = state.withLock { $0.addresses[message.id ?? ""] } ?? URL(filePath: "/")
            return switch message.code {
            case "tls": .failed(.tls(.passes, with: url, reason))
            case "connection-failed": .failed(.connectionFailed(to: url, reason))
            default: .failed(.connectionLost(to: url, reason))
            }
        }
    }
}
