import Foundation
import NIOCore
import PostcardServer

/// What receivers that share a bucket promise.
enum Promise: String {
    case oneRecordPerKey = "a key has one record"
    case offsetNeverFalls = "an offset never falls"
    case readableAtOnce = "a record with a 201 can be read whole"
    case progress = "uploads proceed while one receiver lives"
    case sweepKeepsFiles = "the sweep keeps what a commit names"
    case noLostCommit = "a lost answer is no lost commit"
    case nothingHalf = "nothing half is listed"
    case noOrphans = "nothing is left once it is old"
    case deletionHolds = "what is deleted stays so"
}

/// Checks the promises after each step: each change of an object, and each response to a client.
final class Promises {
    /// A form that is sent in several requests.
    final class Resumable: @unchecked Sendable {
        let id: ResumptionID
        let form: Form
        let expires: Double
        /// The largest offset that a client was told.
        var offset: Int64 = 0
        var isDiscarded = false
        var isGone = false
        var record: UploadID?

        init(_ id: ResumptionID, _ form: Form, expires: Double) {
            self.id = id
            self.form = form
            self.expires = expires
        }
    }

    private struct Commit {
        let record: UploadRecord
        var deleted: Double?
    }

    private let scheduler: Scheduler
    private let store: SimulatedStore
    /// The first that was broken.
    private(set) var broken: (promise: Promise, what: String)?
    /// By the random part of the identifier.
    private var commits: [Substring: Commit] = [:]
    private var marks: Set<String> = []
    private var recordsOfKeys: [String: Set<String>] = [:]
    private var forms: [Int: Form] = [:]
    /// How many deletions of a record clients have asked for.
    private var deletions: [UploadID: Int] = [:]
    private var deleted: Set<UploadID> = []
    /// When sweeps began and ended.
    private var sweeps: [ClosedRange<Double>] = []
    /// The records that clients know.
    private(set) var acknowledged: [UploadID] = []
    private var known: Set<UploadID> = []

    init(_ scheduler: Scheduler, _ store: SimulatedStore) {
        self.scheduler = scheduler
        self.store = store
        store.changes = { [unowned self] key, old, new in changes(key, old, new) }
    }

    func add(_ form: Form) { forms[form.number] = form }

    func breaks(_ promise: Promise, _ what: String) {
        if broken == nil { broken = (promise, "\(what), after \(scheduler.now) s") }
    }

    // MARK: - Objects

    private func changes(_ key: String, _ old: SimulatedStore.Object?, _ new: SimulatedStore.Object?) {
        let names = key.split(separator: "/")
        switch names.first {
        case "records": changesRecord(key, old, new)
        case "keys": changesKey(key, old, new)
        case "files": changesFile(names, new)
        case "unfinished" where names.count == 4 && names[2] == "chunks":
            if let old, let new, old.body != new.body { breaks(.offsetNeverFalls, "\(key) was overwritten") }
        default: break
        }
    }

    private func changesRecord(_ key: String, _ old: SimulatedStore.Object?, _ new: SimulatedStore.Object?) {
        let digest = (new ?? old)?.metadata.first { $0.name == "key" }?.value
        guard let new, new.body.readableBytes > 0 else {
            let random = UploadID(UploadID.inverted(key.dropFirst("records/".count)))?.randomText ?? ""
            if new != nil {
                marks.insert(key)
                if commits[random]?.deleted == nil { commits[random]?.deleted = scheduler.now }
            } else if let old, old.body.readableBytes > 0 {
                breaks(.readableAtOnce, "\(key) was removed")
            } else if let old {
                // A later deletion writes the mark again. It does not count: requests from before the first are refused.
                let age = scheduler.now - (commits[random]?.deleted ?? old.modified)
                if age < 24 * 3600 - 1 { breaks(.deletionHolds, "The mark \(key) was removed after \(age) s") }
            }
            if let digest { recordsOfKeys[digest]?.remove(key) }
            return
        }
        if marks.contains(key) { breaks(.deletionHolds, "\(key) was written after its deletion") }
        commit(new, key)
        guard let digest else { return }
        recordsOfKeys[digest, default: []].insert(key)
        if recordsOfKeys[digest, default: []].count > 1 {
            breaks(.oneRecordPerKey, "\(recordsOfKeys[digest, default: []].sorted()) have one key")
        }
        let isCommitted = store.keys.contains { name in
            name.hasPrefix("keys/\(digest)/") && store.objects[name]?.body == new.body
        }
        if !isCommitted, old == nil { breaks(.oneRecordPerKey, "\(key) is listed, and its key does not say so") }
    }

    private func changesKey(_ key: String, _ old: SimulatedStore.Object?, _ new: SimulatedStore.Object?) {
        guard let new else { return breaks(.oneRecordPerKey, "\(key) was removed") }
        if new.body.readableBytes > 0 {
            if let old, old.body != new.body { breaks(.oneRecordPerKey, "\(key) was overwritten") }
            commit(new, key)
        } else if let id = old?.metadata.first(where: { $0.name == "id" }).flatMap({ UploadID($0.value) }),
            let commit = commits[id.randomText], commit.deleted == nil
        {
            breaks(.oneRecordPerKey, "\(key) was freed before its record was deleted")
        }
    }

    private func changesFile(_ names: [Substring], _ new: SimulatedStore.Object?) {
        guard names.count == 3, let index = Int(names[2]), let commit = commits[names[1]],
            commit.record.files.indices.contains(index)
        else { return }
        guard let deleted = commit.deleted else {
            if let new, Form.hash(new.body.readableBytesView) == commit.record.files[index].sha256 { return }
            return breaks(.sweepKeepsFiles, "A file of \(commit.record.id) was \(new == nil ? "removed" : "changed")")
        }
        if new == nil, scheduler.now - deleted < 3599 {
            breaks(.deletionHolds, "A file of \(commit.record.id) was removed while it may be open")
        }
    }

    private func commit(_ object: SimulatedStore.Object, _ key: String) {
        guard let record = try? UploadRecord(json: Data(object.body.readableBytesView)) else {
            return breaks(.nothingHalf, "\(key) is no record")
        }
        checkFiles(record, .nothingHalf)
        if let known = commits[record.id.randomText], known.record.id != record.id {
            breaks(.oneRecordPerKey, "\(known.record.id) and \(record.id) are of one upload")
        }
        if let number = record.fields.first.flatMap({ Int($0.value) }), let form = forms[number] {
            if !form.matches(record) { breaks(.nothingHalf, "\(key) is not the form that was sent") }
        } else {
            breaks(.nothingHalf, "\(key) is of a form that was not sent")
        }
        if commits[record.id.randomText] == nil { commits[record.id.randomText] = Commit(record: record) }
    }

    private func checkFiles(_ record: UploadRecord, _ promise: Promise) {
        for (index, file) in record.files.enumerated() where file.size > 0 {
            guard let object = store.objects["files/\(record.id.randomText)/\(index)"],
                Form.hash(object.body.readableBytesView) == file.sha256
            else { return breaks(promise, "File \(index) of \(record.id) is not whole") }
        }
    }

    // MARK: - Responses

    /// A client got a 201.
    func created(_ record: UploadRecord, _ form: Form) {
        if !form.matches(record) { breaks(.readableAtOnce, "\(record.id) is not what was sent") }
        if known.insert(record.id).inserted { acknowledged.append(record.id) }
        guard !isBeingDeleted(record.id) else { return }
        let object = store.objects["records/\(UploadID.inverted(record.id.text))"]
        guard let object, object.body.readableBytes > 0 else {
            return breaks(.readableAtOnce, "\(record.id) is not listed after its 201")
        }
        checkFiles(record, .readableAtOnce)
    }

    func beginsToDelete(_ id: UploadID) { deletions[id, default: 0] += 1 }
    func isBeingDeleted(_ id: UploadID) -> Bool { deletions[id] != nil }
    func isDeleted(_ id: UploadID) -> Bool { deleted.contains(id) }

    /// A client got an answer to a deletion.
    func deletes(_ id: UploadID, wasThere: Bool) {
        deleted.insert(id)
        // With another deletion at the same time, either may find nothing.
        if !wasThere, deletions[id] == 1 { breaks(.readableAtOnce, "\(id) is not there to be deleted") }
        if let object = store.objects["records/\(UploadID.inverted(id.text))"], object.body.readableBytes > 0 {
            breaks(.deletionHolds, "\(id) is there after its deletion")
        }
    }

    /// A client got an offset.
    ///
    /// - Parameter least: The largest offset that a client knew when it asked.
    func shows(_ offset: Int64, of resumable: Resumable, least: Int64) {
        if offset < least { breaks(.offsetNeverFalls, "\(resumable.id.text) fell from \(least) to \(offset)") }
        if offset > resumable.form.bytes.count { breaks(.offsetNeverFalls, "\(resumable.id.text) is too long") }
        resumable.offset = max(resumable.offset, offset)
    }

    /// A client got a 404.
    func isGone(_ resumable: Resumable) {
        resumable.isGone = true
        // The clock of the receiver that set the time may be slow, and the clock of the one that compares it fast.
        let isExpired = scheduler.now > resumable.expires - 2 * Simulation.maximumSkew
        let isDeleted = commits.values.contains { commit in
            commit.deleted != nil && commit.record.fields == resumable.form.fields
        }
        if !isExpired, !resumable.isDiscarded, !isDeleted {
            breaks(.offsetNeverFalls, "\(resumable.id.text) is gone")
        }
    }

    /// An append was refused because another one had come first.
    func overtaken(_ resumable: Resumable, from start: Int64, call: Int) {
        let folder = "unfinished/\(resumable.id.text)/"
        guard store.objects[folder + "end"] == nil else { return }
        var end = start
        for key in store.keys where key.hasPrefix(folder + "chunks/") {
            guard let offset = key.split(separator: "/").last.flatMap({ Int64($0) }), let object = store.objects[key]
            else { continue }
            if object.call == call { end = offset + Int64(object.body.readableBytes) }
            if offset == end, object.call != call { return }
            if object.body.readableBytes == 0, object.call == call {
                return breaks(.noLostCommit, "\(key) was taken for another's")
            }
        }
        if end > start { breaks(.noLostCommit, "A chunk of \(resumable.id.text) was taken for another's") }
    }

    // MARK: - End

    /// A sweep has ended.
    func swept(from start: Double) { sweeps.append(start...scheduler.now) }

    /// Whether a sweep has looked at a commit: one in its first ten minutes may still be listed by its receiver, and one of
    /// more than two days ago is not looked for.
    private func isSwept(_ object: SimulatedStore.Object) -> Bool {
        sweeps.contains {
            object.modified + 601...object.modified + 172_799 ~= $0.lowerBound
                && object.modified + 172_799 > $0.upperBound
        }
    }

    /// Checks what is left once everything is old.
    func checkRest() {
        var names: Set<String> = []
        for key in store.keys where key.hasPrefix("records/") {
            guard let object = store.objects[key], object.body.readableBytes > 0,
                let record = try? UploadRecord(json: Data(object.body.readableBytesView))
            else {
                breaks(.noOrphans, "\(key) is left")
                continue
            }
            names.insert(String(record.id.randomText))
            checkFiles(record, .readableAtOnce)
        }
        for key in store.keys {
            let words = key.split(separator: "/")
            switch words[0] {
            case "records": break
            case "files":
                if !names.contains(String(words[1])) || words[2].contains(".") { breaks(.noOrphans, "\(key) is left") }
            case "keys":
                guard let object = store.objects[key], object.body.readableBytes > 0 else { continue }
                let id = object.metadata.first { $0.name == "id" }.flatMap { UploadID($0.value) }
                if id.map({ !names.contains(String($0.randomText)) }) ?? true, isSwept(object) {
                    breaks(.noLostCommit, "The record of \(key) is not listed")
                }
            default: breaks(.noOrphans, "\(key) is left")
            }
        }
        if let part = store.open.values.map(\.key).min() { breaks(.noOrphans, "Parts of \(part) are left") }
        for id in acknowledged where !isBeingDeleted(id) && !names.contains(String(id.randomText)) {
            breaks(.readableAtOnce, "\(id) is not listed any more")
        }
    }
}
