#if os(Linux)
import Foundation
import GRDB
import PostcardQueue
import PostcardTestSupport
import Testing

/// The effects of commands on a queue are still there after a power cut at any moment. `Tests/PowerCut/shim.c` explains
/// how power cuts are simulated.
@Suite(.timeLimit(.minutes(60))) struct QueuePowerCutTests {
    /// The number of commands, with a power cut at each entry of the journal. By default, there are 10 commands, with
    /// power cuts at syncs.
    private static let scale = ProcessInfo.processInfo.environment["POSTCARD_POWER_CUTS"].flatMap(Int.init)

    /// All tests share one recording.
    private static let recording = Task { try await QueueRecording(operations: scale ?? 10) }

    @Test func `the effects of commands stay, and each upload has its whole form`() async throws {
        let violations = try await Self.recording.value.violations(at: Self.scale == nil ? .syncs : .entries)
        #expect(violations.isEmpty, "\(violations)")
    }

    /// The paths that are synced, as regular expressions.
    static let syncs: [(name: String, path: String)] = [
        ("the queue's name", ""),
        ("the names in the queue", "q"),
        ("the database", "q/queue.sqlite"),
        ("the database's log", "q/queue.sqlite-wal"),
        ("the names of bodies", "q/bodies"),
        ("a body", "q/bodies/[0-9A-F-]{36}"),
    ]

    @Test(arguments: syncs)
    func `something is lost without each of the syncs`(name: String, path: String) async throws {
        let synced = try Regex(path)
        let violations = try await Self.recording.value.violations(at: .syncs) { $0.wholeMatch(of: synced) != nil }
        #expect(!violations.isEmpty, "Nothing is lost without the sync of \(name).")
    }

    @Test func `all synced paths are tested`() async throws {
        let known = try (Self.syncs.map(\.path) + ["q/queue.sqlite-journal"]).map { try Regex($0) }
        let synced = Set(try await Self.recording.value.cut.journal.syncs.values)
        let unknown = synced.filter { path in !known.contains { path.wholeMatch(of: $0) != nil } }
        #expect(unknown == [])
    }
}

/// A recording of what commands on a queue did to its disk.
private struct QueueRecording: Sendable {
    /// The state of each upload.
    typealias States = [QueuedUpload.ID: String]

    /// A command that has printed its result or has ended.
    struct Operation: Sendable {
        /// The number of entries in the journal by then.
        let entries: Int
        let states: States
    }

    let cut: PowerCut
    private let operations: [Operation]
    /// The numbers of entries in the journal after which the head of a request is sent.
    private let requests: [Int]
    private let bodies: [QueuedUpload.ID: (name: String, bytes: Data)]

    /// Repeated for as many commands as asked for. They leave uploads that are waiting, paused, cancelled and done.
    private static let commands = [
        "add", "add", "cancel", "add", "pause", "run", "resume", "run", "add", "clear",
    ]

    init(operations count: Int) async throws {
        let disk = try await JournaledDisk()
        let server = try await ReceivingServer()
        let folder = try TemporaryFolder()
        var states: States = [:]
        var bodies: [QueuedUpload.ID: (name: String, bytes: Data)] = [:]
        var ends: [(bytes: Int, output: Data, states: States)] = []
        var cleared = 0
        for number in 0..<count {
            let command = Self.commands[number % Self.commands.count]
            let last = states.keys.max() ?? 0
            var arguments = ["queue", command, "--queue", disk.path("q")]
            switch command {
            case "add":
                let file = try folder.file("\(number)", size: number % 3 * 40_000 + number)
                arguments += [server.uploads.absoluteString, "-F", "number=\(number)", "-F", "file=@\(file.path)"]
            case "run": arguments += ["--drain"]
            case "clear": break
            case "cancel": arguments += ["--keep", "\(last)"]
            default: arguments += ["\(last)"]
            }
            let ending = try await Program.run(arguments, environment: disk.environment)
            guard ending.status == 0 else { throw ProgramFailure("\(command): \(ending.messages)") }
            switch command {
            case "add":
                guard let id = QueuedUpload.ID(ending.text.trimmingCharacters(in: .whitespacesAndNewlines)) else {
                    throw ProgramFailure("\(ending.text) is not an identifier.")
                }
                let names = try FileManager.default.contentsOfDirectory(atPath: disk.path("q/bodies"))
                let new = Set(names).subtracting(bodies.values.map(\.name))
                guard new.count == 1, let name = new.first else { throw ProgramFailure("\(new) is not one body.") }
                bodies[id] = (name, try Data(contentsOf: URL(filePath: disk.path("q/bodies/\(name)"))))
                states[id] = "waiting"
            case "cancel": states[last] = "cancelled"
            case "pause": states[last] = "paused"
            case "resume": states[last] = "waiting"
            case "run": states = states.mapValues { $0 == "waiting" ? "done" : $0 }
            default:
                cleared += states.count { $0.value == "done" }
                states = states.filter { !["done", "cancelled"].contains($0.value) }
            }
            ends.append((try disk.journalSize(), ending.output, states))
        }
        let cut = try disk.powerCut()
        var operations = [Operation(entries: 0, states: [:])]
        for end in ends {
            var entries = cut.journal.count(at: end.bytes)
            if !end.output.isEmpty {
                let last = cut.journal.entries[..<entries].lastIndex { change in
                    // A run prints a line for each upload: all has happened once the last one is there.
                    if case .output(let bytes) = change { end.output.suffix(bytes.count) == Data(bytes) } else { false }
                }
                guard let last else { throw ProgramFailure("The journal does not have the output.") }
                entries = last + 1
            }
            operations.append(Operation(entries: entries, states: end.states))
        }
        self.operations = operations
        requests = cut.journal.entries.indices.filter { index in
            if case .output(let bytes) = cut.journal.entries[index] { bytes.starts(with: "POST ".utf8) } else { false }
        }.map { $0 + 1 }
        guard requests.count == states.count(where: { $0.value == "done" }) + cleared else {
            throw ProgramFailure("The journal has \(requests.count) requests.")
        }
        self.cut = cut
        self.bodies = bodies
        guard try await server.end().exitStatus == 0 else { throw ProgramFailure("The receiver failed.") }
    }

    func violations(
        at moments: PowerCut.Moments, ignoring isIgnored: (String) -> Bool = { _ in false }
    ) async throws -> [PowerCut.Violation] {
        let promises = Set(operations.map(\.entries) + requests)
        return try await cut.violations(at: moments, promises: promises, ignoring: isIgnored) { directory, entries in
            let ended = operations.last { $0.entries <= entries }
            let next = operations.first { $0.entries > entries }
            let sent = requests.count { $0 > ended?.entries ?? 0 && $0 <= entries }
            do {
                let queue = UploadQueue(directory: directory.appending(path: "q"))
                let found = try await queue.uploads()
                return try brokenStates(found, ended?.states ?? [:], next?.states ?? ended?.states ?? [:])
                    + brokenBodies(found, in: directory.appending(path: "q/bodies"))
                    + brokenDatabase(at: directory.appending(path: "q/queue.sqlite"))
                    + forgottenAttempts(sent, ended?.states ?? [:], at: directory.appending(path: "q/queue.sqlite"))
            } catch {
                return ["The queue cannot be used: \(error)"]
            }
        }
    }

    private func brokenStates(_ found: [QueuedUpload], _ before: States, _ after: States) throws -> [String] {
        let known = Dictionary(uniqueKeysWithValues: found.map { ($0.id, $0.state.name) })
        return Set(known.keys).union(before.keys).sorted().compactMap { id in
            var allowed = [before[id], after[id]]
            // The upload is being sent.
            if before[id] == "waiting", after[id] == "done" { allowed.append("sending") }
            if allowed.contains(known[id]) { return nil }
            return "Upload \(id) is \(known[id] ?? "missing") and was \(before[id] ?? "missing")."
        }
    }

    private func brokenBodies(_ found: [QueuedUpload], in folder: URL) -> [String] {
        found.compactMap { upload in
            guard upload.state.name != "done", let body = bodies[upload.id] else { return nil }
            if (try? Data(contentsOf: folder.appending(path: body.name))) == body.bytes { return nil }
            return "Upload \(upload.id) is \(upload.state.name) and does not have its form."
        }
    }

    /// Once the head of a request is sent, the server may get the form: the queue still knows that afterwards.
    private func forgottenAttempts(_ sent: Int, _ before: States, at url: URL) throws -> [String] {
        let known = try DatabaseQueue(path: url.path).read { db in
            try QueuedUpload.ID.fetchSet(
                db, sql: "SELECT id FROM delivery UNION SELECT id FROM upload WHERE state = 'done'")
        }
        let found = known.count { before[$0] == "waiting" }
        return found >= sent ? [] : ["\(sent) forms may have arrived, and the queue knows it of \(found)."]
    }

    private func brokenDatabase(at url: URL) throws -> [String] {
        let results = try DatabaseQueue(path: url.path).read { try String.fetchAll($0, sql: "PRAGMA integrity_check") }
        return results == ["ok"] ? [] : results
    }
}
#endif
