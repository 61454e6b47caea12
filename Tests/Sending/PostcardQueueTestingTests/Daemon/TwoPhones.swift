import Foundation
import HTTPTypes
import NIOHTTP1
import PostcardQueueTesting
import Synchronization
import Testing

/// A phone of the module and the model of the system, to which the same happens.
struct TwoPhones {
    /// The app, as it is made at each launch.
    private final class App: Sendable {
        let queue: UploadQueue

        init(_ folder: URL, _ record: Record) {
            var session = BackgroundSession(identifier: "com.example.pets")
            session.retryPolicy = RetryPolicy(maximumAttempts: 4)
            session.retryPolicy.jitter = 0
            session.retryPolicy.firstDelay = .seconds(10)
            session.retryPolicy.maximumDelay = .seconds(3600)
            session.maximumOpenUploads = TwoPhones.places
            session.headerFields = { [.authorization: "Bearer \(record.token(for: $0.id))"] }
            queue = UploadQueue(directory: folder, session: session) { record.note($0) }
        }
    }

    /// What the app and its servers know of the uploads of a phone.
    private final class Record: Sendable {
        let start: Date
        private let tokens = Mutex<[Int64: Int]>([:])
        private let keys = Mutex<[String: String]>([:])
        private let outcomes = Mutex<[String]>([])

        init(_ start: Date) {
            self.start = start
        }

        func note(_ upload: QueuedUpload) {
            let text = describe(upload)
            outcomes.withLock { $0.append("told: \(text)") }
        }

        var told: [String] { outcomes.withLock { $0.sorted() } }

        func token(for id: Int64) -> Int {
            tokens.withLock { tokens in
                tokens[id, default: 0] += 1
                return tokens[id] ?? 0
            }
        }

        func describe(_ upload: QueuedUpload) -> String {
            let text = "\(upload.id), attempts \(upload.attempts), \(upload.state.name)"
            return switch upload.state {
            case .retrying(let date, let failure):
                "\(text) at \(Int(date.timeIntervalSince(start).rounded())) s, \(describe(failure))"
            case .failed(let failure), .importing(let failure?): "\(text), \(describe(failure))"
            case .done(let response): "\(text), \(describe(response))"
            default: text
            }
        }

        private func describe(_ failure: QueuedUpload.Failure) -> String {
            let response = failure.response.map { ", \(describe($0))" } ?? ""
            return "\(failure.code)\(failure.delivery.mayHaveArrived ? ", may have arrived" : "")\(response)"
        }

        private func describe(_ response: QueuedUpload.Response) -> String {
            "\(response.status) \(response.contentType ?? "-") \(String(decoding: response.body, as: UTF8.self))"
        }

        /// What is the same in both requests. Each upload has one key.
        func describe(
            _ method: String, _ path: String, _ fields: [(name: String, value: String)], _ body: some Collection<UInt8>
        ) -> String {
            var lines = ["\(method) \(path)"]
            var boundary = ""
            for (name, value) in fields.sorted(by: { $0.name < $1.name }) {
                switch name {
                case "host", "content-length", "connection": break
                case "idempotency-key":
                    let key = keys.withLock { keys in
                        defer { keys[path] = keys[path] ?? value }
                        return keys[path] ?? value
                    }
                    lines.append(key == value ? "the same key" : "another key")
                case "content-type":
                    boundary = value.components(separatedBy: "boundary=").last ?? ""
                    lines.append("\(name): \(value)")
                default: lines.append("\(name): \(value)")
                }
            }
            lines.append(String(decoding: body, as: UTF8.self))
            return lines.joined(separator: "\n").replacingOccurrences(of: boundary, with: "‹boundary›")
        }
    }

    private enum Mode { case ended, running, suspended }

    /// How many uploads the system has at a time.
    private static let places = 4

    private let phone: TestPhone
    private let model: DaemonPhone
    private let url: URL
    private let records: (Record, Record)
    private var apps: (App, App)?
    private var mode = Mode.ended
    private var network = PhoneEvent.Network.wifi
    private var count = 0
    /// The uploads that the system has and has begun to send.
    private var begun: Set<String> = []

    init(_ model: DaemonPhone, url: URL) throws {
        phone = try TestPhone()
        self.model = model
        self.url = url
        records = (Record(phone.date), Record(model.start))
    }

    // MARK: - What happens

    /// Lets something happen to both.
    ///
    /// - Returns: `false` if it cannot happen now.
    mutating func happen(_ event: PhoneEvent) async throws -> Bool {
        switch event {
        case .launch, .kill, .forceQuit, .suspend, .resume, .wakeUp: return try await happenToApp(event)
        case .enqueue(let needsWiFi):
            guard mode == .running, let apps else { return false }
            var conditions = UploadConditions()
            conditions.networks.cellular = !needsWiFi
            var form = MultipartForm()
            form.append("pet \(count)", named: "name")
            form.append(Data("a photo of \(count)".utf8), named: "petImage", filename: "\(count).bin")
            let url = url.appending(path: "\(count)")
            count += 1
            for app in [apps.0, apps.1] { try await app.queue.enqueue(form, to: url, conditions: conditions) }
        case .cancel(let index): return try await change(index) { try await $0.cancel($1) }
        case .pause(let index): return try await change(index) { try await $0.pause($1) }
        case .unpause(let index):
            return try await change(index) {
                try await $0.resume($1)
                try await $0.handOver()
            }
        case .respond(let response, let index):
            let held = model.server.held.keys.sorted()
            guard !held.isEmpty else { return false }
            let path = held[index % held.count]
            guard let number = Int64(path.split(separator: "/").last ?? "") else { return false }
            begun.remove(path)
            await phone.respond(with: response, to: number + 1)
            try await model.respond(with: response, to: path)
        case .respondToAll(let response):
            let held = model.server.held.keys.sorted()
            guard !held.isEmpty else { return false }
            begun.subtract(held)
            await phone.respondToAll(with: response)
            for path in held { try await model.respond(with: response, to: path) }
        case .fail(let response):
            // With a free place, the next upload would fail too. What the system has sent before may have arrived.
            let open = await phone.handedOver.map { $0.url.path }
            guard network == .none, !open.isEmpty, open.count < Self.places else { return false }
            if case .connectionFails = response.kind, !begun.isDisjoint(with: open) { return false }
            begun.subtract(open)
            network = .wifi
            phone.network = NetworkPath()
            await phone.respondToAll(with: response)
            try await model.set(NetworkPath(), failing: response)
        case .network(let network):
            self.network = network
            let path = NetworkPath(isCellular: network == .cellular, isAvailable: network != .none)
            phone.network = path
            _ = await phone.handedOver
            try await model.set(path)
        case .locked(let isLocked):
            phone.isLocked = isLocked
            try await model.setLocked(isLocked)
        case .advance(let seconds):
            await phone.advance(by: .seconds(seconds))
            try await model.advance(by: .seconds(seconds))
        }
        return true
    }

    private mutating func happenToApp(_ event: PhoneEvent) async throws -> Bool {
        let (phone, model, records) = (phone, model, records)
        switch (event, mode) {
        case (.launch, .ended):
            let first = await phone.launch { App(phone.directory.appending(path: "queue"), records.0) }
            let second = try await model.launch { App(model.directory, records.1) }
            apps = (first, second)
            mode = .running
            for app in [first, second] { try await app.queue.handOver() }
        case (.kill, .running), (.kill, .suspended):
            apps = nil
            mode = .ended
            await phone.kill()
            try await model.kill()
        case (.forceQuit, _):
            apps = nil
            mode = .ended
            await phone.forceQuit()
            try await model.forceQuit()
        case (.suspend, .running):
            mode = .suspended
            await phone.suspend()
            try await model.suspend()
        case (.resume, .suspended):
            mode = .running
            await phone.resume()
            try await model.resume()
        case (.wakeUp, .ended), (.wakeUp, .suspended):
            guard try await !model.waking.isEmpty else { return false }
            var (first, second) = (apps?.0, apps?.1)
            await phone.wakeUp { identifier in
                let app = first ?? App(phone.directory.appending(path: "queue"), records.0)
                first = app
                await app.queue.handleEvents(forSession: identifier)
            }
            try await model.wakeUp { identifier in
                let app = second ?? App(model.directory, records.1)
                second = app
                await app.queue.handleEvents(forSession: identifier)
            }
            if let first, let second { apps = (first, second) }
            mode = .suspended
        default: return false
        }
        return true
    }

    private func change(
        _ index: Int, _ change: (UploadQueue, QueuedUpload.ID) async throws -> Void
    ) async throws -> Bool {
        guard mode == .running, let apps, count > 0 else { return false }
        var failures: [String] = []
        for app in [apps.0, apps.1] {
            do {
                try await change(app.queue, Int64(index % count) + 1)
            } catch let error as UploadQueueError {
                failures.append("\(error)")
            }
        }
        #expect(failures.isEmpty || failures.count == 2 && failures[0] == failures[1], "\(failures)")
        return failures.isEmpty
    }

    // MARK: - The comparison

    /// What can be seen of both: the states and outcomes of all uploads, and the requests that servers have.
    mutating func look() async throws -> (phone: String, model: String) {
        let sent = await phone.handedOver
        try await model.settle()
        let held = model.server.held
        begun.formUnion(held.keys)
        let requests = sent.filter { held[$0.url.path] != nil }.map { sent in
            records.0.describe(
                sent.method.rawValue, sent.url.path, sent.headerFields.map { ($0.name.canonicalName, $0.value) },
                sent.body)
        }
        let received = held.map { path, request in
            records.1.describe(
                request.head.method.rawValue, path, request.head.headers.map { ($0.name.lowercased(), $0.value) },
                request.body)
        }
        let states = try await (states(apps?.0, records.0), states(apps?.1, records.1))
        return (
            Self.text(sent.count, states.0, records.0.told, requests.sorted()),
            Self.text(try await model.openCount, states.1, records.1.told, received.sorted())
        )
    }

    private func states(_ app: App?, _ record: Record) async throws -> [String] {
        guard mode == .running, let app else { return [] }
        return try await app.queue.uploads().map(record.describe).sorted()
    }

    private static func text(_ open: Int, _ states: [String], _ told: [String], _ requests: [String]) -> String {
        (["The system has \(open)."] + states + told + requests).joined(separator: "\n")
    }

    /// Lets everything end that can, as a user does who opens the app on Wi-Fi.
    mutating func finish() async throws {
        for event: PhoneEvent in [.resume, .launch, .network(.wifi), .locked(false)] { _ = try await happen(event) }
        for index in 0..<count { _ = try await happen(.unpause(index)) }
        var rounds = 10
        while rounds > 0, try await !isDone {
            rounds -= 1
            _ = try await happen(.respondToAll(with: .created))
            _ = try await happen(.advance(seconds: 3600))
        }
    }

    /// Whether all uploads have ended.
    var isDone: Bool {
        get async throws {
            guard let apps else { return false }
            return try await apps.0.queue.uploads().allSatisfy(\.state.isEnded)
        }
    }
}
