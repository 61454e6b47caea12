#if os(Linux)
import Crypto
import Foundation
import NIOCore
import PostcardForm
import PostcardTestSupport
import SystemPackage
import Testing

@testable import PostcardStore

/// What a receiver has answered is there after a power cut at any moment. `Tests/PowerCut/shim.c` says how it is cut.
@Suite(.timeLimit(.minutes(60))) struct StorePowerCutTests {
    /// How many uploads the power is cut under, at each entry of the journal; by default 10, and at some.
    private static let scale = ProcessInfo.processInfo.environment["POSTCARD_POWER_CUTS"].flatMap(Int.init)

    /// Recorded once for all tests, because it is the same for all.
    private static let recording = Task { try await ReceiverRecording(uploads: 10) }

    @Test func `what was answered is whole, and nothing is half there`() async throws {
        var recording = try await Self.recording.value
        // Small stores one after the other: what is looked at grows with each upload, and so does the journal.
        for _ in stride(from: 0, to: Self.scale ?? 1, by: 10) {
            let violations = try await recording.violations(at: Self.scale == nil ? .syncs : .entries)
            #expect(violations.isEmpty, "\(violations)")
            if Self.scale != nil { recording = try await ReceiverRecording(uploads: 10) }
        }
    }

    /// What is synced, and which paths that is.
    static let syncs: [(name: String, path: String)] = [
        ("the store's name", ""),
        ("the names of records", "r"),
        ("the names in a record", "r/.incoming/[0-9a-z]+-[0-9]+"),
        ("a file", "r/.incoming/[0-9a-z]+-[0-9]+/[0-9]+"),
        ("a record", "r/.incoming/[0-9a-z]+-[0-9]+/record.json"),
        ("the names of unfinished uploads", "r/.unfinished"),
        ("the names in an unfinished upload", "r/.unfinished/[a-z0-9]+"),
        ("an unfinished upload's facts", "r/.unfinished/[a-z0-9]+/upload.json(.new)?"),
        ("an unfinished upload's bytes", "r/.unfinished/[a-z0-9]+/body"),
        ("the response to an upload", "r/.unfinished/[a-z0-9]+/answer.json.new"),
    ]

    @Test(arguments: syncs)
    func `without the sync of each, something is lost`(name: String, path: String) async throws {
        let recording = try await Self.recording.value
        let synced = try Regex(path)
        let violations = try await recording.violations(at: .promises) { $0.wholeMatch(of: synced) != nil }
        #expect(!violations.isEmpty, "Nothing is lost without the sync of \(name).")
    }

    @Test func `everything that is synced is known here`() async throws {
        let known = try Self.syncs.map { try Regex($0.path) }
        let synced = Set(try await Self.recording.value.cut.journal.syncs.values)
        let unknown = synced.filter { path in !known.contains { path.wholeMatch(of: $0) != nil } }
        #expect(unknown == [])
    }
}

/// A form that is posted.
private struct PostedForm: Sendable {
    let index: Int
    let files: [Data]
    let body: Data
    private let digests: [String]

    static let contentType = "Content-Type: multipart/form-data; boundary=b"
    /// Some have several pieces, and some have no file at all.
    private static let sizes = [[700, 0, 5_000], [70_000], [0], [300_000, 10], [1], [20_000, 3_000]]

    init(_ index: Int) {
        self.index = index
        files = Self.sizes[index % Self.sizes.count].map { size in
            Data((0..<size).lazy.map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8 &+ index) })
        }
        digests = files.map { SHA256.hash(data: $0).hexadecimal }
        var body = Data("--b\r\nContent-Disposition: form-data; name=\"index\"\r\n\r\n\(index)\r\n".utf8)
        for (number, file) in files.enumerated() {
            body += Data(
                "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"\(number)\"\r\n\r\n".utf8)
            body += file + Data("\r\n".utf8)
        }
        self.body = body + Data("--b--\r\n".utf8)
    }

    /// The key of every second form that is posted as a whole.
    var key: String? { index % 2 == 0 ? "key-\(index)" : nil }

    func isThat(of record: UploadRecord) -> Bool {
        record.fields == [.init(name: "index", value: "\(index)")] && record.files.count == files.count
            && zip(record.files, files).allSatisfy { $0.size == $1.count } && record.files.map(\.sha256) == digests
    }
}

/// What a receiver did to its disk while forms were posted to it, and what it answered.
private struct ReceiverRecording: Sendable {
    /// What a response promises.
    enum Promise: Sendable {
        /// The receiver listens. From then on uploads may arrive at the same time.
        case ready
        case record(id: String)
        /// An upload can be resumed at this address, at this byte or later.
        case resumable(token: String, offset: Int)
        case finished(token: String, id: String)
        /// A record or an unfinished upload was deleted.
        case deleted(name: String)
    }

    let cut: PowerCut
    /// In their order, each with the number of entries before it and itself.
    let promises: [(entries: Int, promise: Promise)]
    /// The forms by what records and unfinished uploads are known by.
    let forms: [String: PostedForm]
    /// Where a record or unfinished upload is taken away.
    let departures: [String: Int]

    init(uploads: Int) async throws {
        let disk = try await JournaledDisk()
        var session = PostingSession(folder: try TemporaryFolder())
        for half in 0..<2 {
            let server = try await RunningServer(
                ["serve", "--port", "0", "--directory", disk.path("r")], environment: disk.environment)
            try await session.post((uploads * half / 2)..<(uploads * (half + 1) / 2), to: server.address)
            guard await server.terminate() == 0 else { throw ProgramFailure("The receiver has failed.") }
        }
        cut = try disk.powerCut()
        forms = session.forms
        promises = try Self.promises(in: cut.journal, session.promises)
        var departures: [String: Int] = [:]
        for (index, change) in cut.journal.entries.enumerated() {
            if case .rename(let old, _) = change { departures[old.text] = index }
        }
        self.departures = departures
    }

    /// Finds the responses in what was sent.
    ///
    /// - Parameter others: What other responses promise than those to forms that came as a whole, in their order.
    private static func promises(
        in journal: PowerCutJournal, _ others: [Promise]
    ) throws -> [(entries: Int, promise: Promise)] {
        var promises: [(entries: Int, promise: Promise)] = []
        var others = others[...]
        for (index, change) in journal.entries.enumerated() {
            guard case .output(let bytes) = change else { continue }
            for head in String(decoding: bytes, as: UTF8.self).components(separatedBy: "\r\n\r\n") {
                if head.hasPrefix("listening on ") { promises.append((index + 1, .ready)) }
                guard head.hasPrefix("HTTP/1.1 ") else { continue }
                let response = PostingSession.Response(head)
                let name = response["location"]?.split(separator: "/").last.map(String.init)
                let promise: Promise
                if response.status == 104, let name {
                    promise = .resumable(token: name, offset: 0)
                } else if response.status == 204 || response["upload-offset"] != nil, let next = others.popFirst() {
                    promise = next
                } else if response.status == 201, let name {
                    promise = .record(id: name)
                } else {
                    throw ProgramFailure("The receiver was not expected to answer: \(head)")
                }
                promises.append((index + 1, promise))
            }
        }
        guard others.isEmpty else { throw ProgramFailure("The journal lacks \(others.count) responses.") }
        return promises
    }

    func violations(
        at moments: PowerCut.Moments, ignoring isIgnored: (String) -> Bool = { _ in false }
    ) async throws -> [PowerCut.Violation] {
        let ends = Set(promises.map(\.entries))
        return try await cut.violations(at: moments, promises: ends, ignoring: isIgnored) { directory, entries in
            let kept = promises.prefix { $0.entries <= entries }.map(\.promise)
            let unfinished = directory.appending(path: "r/.unfinished").path
            if !kept.isEmpty, !FileManager.default.fileExists(atPath: unfinished) {
                return ["The folder of unfinished uploads is gone."]
            }
            let store: LocalUploadStore
            do {
                store = try LocalUploadStore(directory: directory.appending(path: "r").path)
            } catch {
                return ["The store cannot be opened: \(error)"]
            }
            return try await brokenRecords(in: store, kept, entries) + brokenResumptions(in: store, kept, entries)
        }
    }

    private func isLeft(_ name: String, _ entries: Int) -> Bool { departures[name].map { $0 >= entries } ?? true }

    private func brokenRecords(
        in store: LocalUploadStore, _ promises: [Promise], _ entries: Int
    ) async throws -> [String] {
        var broken: [String] = []
        let listed = Set(try await store.identifiers(limit: .max, after: nil).map(\.text))
        for promise in promises {
            switch promise {
            case .record(let id), .finished(_, let id):
                guard isLeft(id, entries) else { continue }
                if !listed.contains(id) { broken.append("The upload \(id) is gone.") }
                guard case .record = promise, let key = forms[id]?.key else { continue }
                if store.keys.record(under: UploadKey(key, scope: ""))?.id.text != id {
                    broken.append("The key of the upload \(id) is gone.")
                }
            case .deleted(let name):
                if listed.contains(name) { broken.append("The upload \(name) was deleted and is there again.") }
            case .ready, .resumable: break
            }
        }
        for id in listed {
            if try await !isWhole(id, in: store) { broken.append("The upload \(id) is not there as a whole.") }
        }
        return broken
    }

    private func isWhole(_ text: String, in store: LocalUploadStore) async throws -> Bool {
        guard let form = forms[text], let id = UploadID(text), let record = try? await store.record(id),
            form.isThat(of: record)
        else { return false }
        for (index, content) in form.files.enumerated() {
            guard let file = try? await store.openFile(index, of: id), file.size == content.count else { return false }
            let bytes = try await file.read(at: 0, count: content.count)
            guard bytes.withUnsafeReadableBytes({ Data($0) == content }) else { return false }
        }
        return true
    }

    private func brokenResumptions(
        in store: LocalUploadStore, _ promises: [Promise], _ entries: Int
    ) async throws -> [String] {
        var broken: [String] = []
        for promise in promises {
            switch promise {
            case .ready, .record: break
            case .resumable(let token, let offset):
                guard isLeft(token, entries) else { continue }
                switch await upload(token, of: store)?.progress {
                case .unfinished(let known) where known >= offset: break
                case .finished: break
                case let progress:
                    broken.append("\(token) was at \(offset), and is now \(String(describing: progress)).")
                }
            case .finished(let token, let id):
                guard isLeft(token, entries) else { continue }
                guard case .finished(_, let record?) = await upload(token, of: store)?.progress, record.text == id
                else {
                    broken.append("The response to \(token) is gone.")
                    continue
                }
            case .deleted(let name):
                if await upload(name, of: store) != nil { broken.append("\(name) was deleted and is there again.") }
            }
        }
        // Also those of which nothing was said yet.
        for (token, form) in forms {
            guard let upload = await upload(token, of: store), case .unfinished(let offset) = upload.progress else {
                continue
            }
            if try Data(contentsOf: URL(filePath: upload.directory.body.string)) != form.body.prefix(Int(offset)) {
                broken.append("\(token) has \(offset) bytes that are not those of its form.")
            }
        }
        return broken
    }

    private func upload(_ name: String, of store: LocalUploadStore) async -> LocalUnfinishedUpload? {
        guard let id = ResumptionID(name) else { return nil }
        return await store.unfinished.find(id)
    }
}

/// Posts forms, by curl.
private struct PostingSession {
    let folder: TemporaryFolder
    private(set) var forms: [String: PostedForm] = [:]
    /// What the responses to other requests promise than those that post a form as a whole.
    private(set) var promises: [ReceiverRecording.Promise] = []

    init(folder: TemporaryFolder) {
        self.folder = folder
    }

    /// The last head of a response.
    struct Response: Sendable {
        let status: Int
        private let fields: [String: String]

        init(_ text: String) {
            let lines = text.components(separatedBy: "\r\n")
            status = lines[0].split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
            let pairs = lines.dropFirst().compactMap { line in
                line.firstIndex(of: ":").map { colon in
                    (line[..<colon].lowercased(), line[colon...].dropFirst().trimmingCharacters(in: .whitespaces))
                }
            }
            fields = Dictionary(pairs) { $1 }
        }

        subscript(name: String) -> String? { fields[name] }

        func name() throws -> String {
            guard let name = fields["location"]?.split(separator: "/").last else {
                throw ProgramFailure("The receiver was not expected to answer \(status) \(fields).")
            }
            return String(name)
        }
    }

    /// Posts forms as a whole, some at a time, and meanwhile others in pieces, one after the other.
    mutating func post(_ range: Range<Int>, to address: String) async throws {
        let folder = folder
        let wholes = range.filter { ![1, 3].contains($0 % 5) }
        async let whole = withThrowingTaskGroup(of: [String: PostedForm].self) { group in
            for worker in 0..<4 {
                group.addTask {
                    var forms: [String: PostedForm] = [:]
                    for index in wholes.dropFirst(worker).enumerated().filter({ $0.offset % 4 == 0 }).map(\.element) {
                        let form = PostedForm(index)
                        forms[try await Self.postWhole(form, to: address, folder)] = form
                    }
                    return forms
                }
            }
            return try await group.reduce(into: [:]) { all, some in all.merge(some) { $1 } }
        }
        for index in range where !wholes.contains(index) { try await postInPieces(index, to: address) }
        let posted = try await whole
        forms.merge(posted) { $1 }
        for (id, form) in posted where form.index % 5 == 2 { try await delete("/uploads/\(id)", id, at: address) }
    }

    private static func postWhole(
        _ form: PostedForm, to address: String, _ folder: TemporaryFolder
    ) async throws -> String {
        let key = form.key.map { ["Idempotency-Key: \($0)"] } ?? []
        let fields = [PostedForm.contentType] + key
        let response = try await request("POST", "\(address)/uploads", fields, form.body, folder)
        // Under a key, the response to the same form is the same.
        if form.key != nil {
            let again = try await request("POST", "\(address)/uploads", fields, form.body, folder)
            guard try again.name() == response.name() else { throw ProgramFailure("A key has two records.") }
        }
        return try response.name()
    }

    private mutating func postInPieces(_ index: Int, to address: String) async throws {
        let form = PostedForm(index)
        let third = form.body.count / 3
        var response = try await Self.request(
            "POST", "\(address)/uploads", Self.draft + [PostedForm.contentType, "Upload-Complete: ?0"],
            form.body.prefix(third), folder)
        let token = try response.name()
        forms[token] = form
        promises.append(.resumable(token: token, offset: third))
        let location = "/uploads/resumable/\(token)"
        let append = Self.draft + ["Content-Type: application/partial-upload"]
        _ = try await Self.request(
            "PATCH", address + location, append + ["Upload-Offset: \(third)", "Upload-Complete: ?0"],
            form.body.dropFirst(third).prefix(third), folder)
        promises.append(.resumable(token: token, offset: 2 * third))
        _ = try await Self.request("HEAD", address + location, Self.draft, nil, folder)
        promises.append(.resumable(token: token, offset: 2 * third))
        switch index {
        case 1: break
        case 3: try await delete(location, token, at: address)
        default:
            response = try await Self.request(
                "PATCH", address + location, append + ["Upload-Offset: \(2 * third)", "Upload-Complete: ?1"],
                form.body.dropFirst(2 * third), folder)
            let id = try response.name()
            forms[id] = form
            promises.append(.finished(token: token, id: id))
            if index == 6 { try await delete("/uploads/\(id)", id, at: address) }
        }
    }

    private mutating func delete(_ path: String, _ name: String, at address: String) async throws {
        _ = try await Self.request("DELETE", address + path, Self.draft, nil, folder)
        promises.append(.deleted(name: name))
    }

    private static let draft = ["Upload-Draft-Interop-Version: 8"]

    private static func request(
        _ method: String, _ url: String, _ fields: [String], _ body: Data?, _ folder: TemporaryFolder
    ) async throws -> Response {
        var options = ["-sS", "-o", "/dev/null", "-D", "-"] + fields.flatMap { ["-H", $0] }
        options += method == "HEAD" ? ["-I"] : ["-X", method]
        let file = try folder.file(UUID().uuidString, body ?? Data())
        if body != nil { options += ["--data-binary", "@\(file.path)"] }
        let ending = try await Program.run("curl", options + [url])
        let response = Response(ending.text.components(separatedBy: "\r\n\r\n").last { !$0.isEmpty } ?? "")
        guard (200..<300).contains(response.status) else {
            throw ProgramFailure("\(method) \(url) was answered with \(ending.text) \(ending.messages)")
        }
        return response
    }
}
#endif
