import Logging
import PostcardFoundation
import PostcardStore
import Synchronization

/// The unfinished uploads of a store, counted in the shares of their clients.
///
/// If there are too many uploads, an upload that is not worth keeping is discarded: of the address with the most
/// uploads, or of the client's own address if no address has more. If there are too many bytes, only uploads of the
/// client's own address are discarded, so that a request that announces many bytes cannot remove uploads of others.
///
/// An upload is worth keeping while a request uses it, and for the time that its bytes would take to arrive at 500
/// bytes per second. For two megabytes, this is about an hour, so a phone that was offline can resume. A tiny
/// upload is worth keeping only for a moment, so many tiny uploads cannot keep others out for long.
final class UnfinishedUploads<Store: ResumableUploadStore>: Sendable {
    private struct Entry {
        let upload: Store.Unfinished
        let peer: PeerAddress?
        let created: Date
        let place: ShareAccount.Hold
        let bytes: ShareAccount.Hold
        /// The number of bytes reserved for the upload.
        var held: Int64 = 0
        /// The length that a request has announced.
        var announced: Int64 = 0
        /// The checker of the form, which has read the bytes that this process received.
        var checker: ArrivingFormChecker?

        var worthless: Date { created.addingTimeInterval(Double(held) / 500) }
        var missing: Int64 { max(announced - held, 0) }
    }

    private struct Table {
        var entries: [ResumptionID: Entry] = [:]
        var isLoaded = false
        /// The last time at which this process checked whether another process has ended the upload.
        var lastLook: ContinuousClock.Instant?

        /// The number of bytes that an address has announced but not sent yet.
        func missing(of peer: PeerAddress?, except id: ResumptionID) -> Int64 {
            entries.values.reduce(0) { sum, entry in
                guard entry.peer == peer, entry.upload.id != id else { return sum }
                return sum.addingReportingOverflow(entry.missing).overflow ? .max : sum + entry.missing
            }
        }

        /// Forgets uploads that are finished or discarded, and returns them. Their reservations end when the caller
        /// releases the returned entries.
        mutating func removeEnded(now: Date) -> [Entry] {
            let ended = entries.values.filter { entry in
                if case .unfinished = entry.upload.progress { entry.upload.expires <= now } else { true }
            }
            for entry in ended { entries[entry.upload.id] = nil }
            return ended
        }
    }

    private let store: Store
    private let shares: ShareAccount
    private let options: UnfinishedUploadOptions
    private let table = Mutex(Table())

    private static var lookInterval: Duration { .seconds(10) }
    private static var maximumLooks: Int { 200 }

    init(store: Store, shares: ShareAccount, options: UnfinishedUploadOptions) {
        self.store = store
        self.shares = shares
        self.options = options
    }

    func find(_ id: ResumptionID) async throws -> Store.Unfinished? {
        try await load()
        return try await store.unfinishedUpload(id)
    }

    /// Creates an upload. Throws ``UploadProblem`` if a limit is reached, and the errors of the store.
    func create(_ id: ResumptionID, of form: UnfinishedForm, for peer: PeerAddress?) async throws -> Store.Unfinished {
        try await load()
        let place = try await withRoom(for: peer) { () throws(UploadProblem) in
            try shares.take(of: .unfinishedUploads, for: peer)
        }
        let bytes = shares.restore(0, of: .unfinishedBytes, for: peer)
        if let length = form.length {
            try await withRoom(for: peer, isOwn: true) { () throws(UploadProblem) in
                try check(length, missingElsewhere(peer, except: id), bytes)
            }
        }
        let now = Date()
        let upload = try await store.createUnfinishedUpload(
            id, of: form, expires: now.addingTimeInterval(options.lifetime / .seconds(1)))
        let entry = Entry(
            upload: upload, peer: peer, created: now, place: place, bytes: bytes, announced: form.length ?? 0)
        table.withLock { $0.entries[id] = entry }
        return upload
    }

    /// Counts the announced length of an upload in its client's share, before its bytes arrive. Throws
    /// ``UploadProblem`` if they exceed a limit.
    func announce(_ length: Int64, of upload: Store.Unfinished) async throws {
        guard let entry = table.withLock({ $0.entries[upload.id] }), length > entry.held else { return }
        try await withRoom(for: entry.peer, isOwn: true) { () throws(UploadProblem) in
            try check(length - entry.held, missingElsewhere(entry.peer, except: upload.id), entry.bytes)
        }
        table.withLock { $0.entries[upload.id]?.announced = length }
    }

    /// Reserves the bytes of an upload up to an offset. Throws ``UploadProblem`` if the bytes exceed a limit.
    func grow(_ upload: Store.Unfinished, to end: Int64) async throws {
        guard let entry = table.withLock({ $0.entries[upload.id] }), end > entry.held else { return }
        try await withRoom(for: entry.peer, isOwn: true) { () throws(UploadProblem) in
            try entry.bytes.grow(by: Int(clamping: end - entry.held))
        }
        table.withLock { $0.entries[upload.id]?.held = end }
    }

    /// Takes the checker of an upload if it has read all bytes up to the offset. ``keep(_:of:)`` puts it back.
    func takeChecker(of upload: Store.Unfinished, at offset: Int64) -> ArrivingFormChecker? {
        let checker = table.withLock { $0.entries[upload.id]?.checker.take() }
        return checker?.offset == offset ? checker : nil
    }

    /// Keeps a checker for the next request of the upload.
    func keep(_ checker: ArrivingFormChecker?, of upload: Store.Unfinished) {
        table.withLock { $0.entries[upload.id]?.checker = checker }
    }

    /// Releases the reservations of an upload that is finished or discarded.
    func ended(_ upload: Store.Unfinished) {
        // The entry is released outside the lock.
        let entry = table.withLock { $0.entries.removeValue(forKey: upload.id) }
        withExtendedLifetime(entry) {}
    }

    /// Counts an upload that another process has created or appended to.
    func adopt(_ upload: Store.Unfinished, at offset: Int64, for peer: PeerAddress?) {
        let known = table.withLock { $0.entries[upload.id] }
        guard known.map({ offset > $0.held }) ?? true else { return }
        let entry = restored(upload, at: offset, for: known?.peer ?? peer)
        // The earlier reservations are released outside the lock.
        let replaced = table.withLock { $0.entries.updateValue(entry, forKey: upload.id) }
        withExtendedLifetime(replaced) {}
    }

    private func restored(_ upload: Store.Unfinished, at offset: Int64, for peer: PeerAddress?) -> Entry {
        Entry(
            upload: upload, peer: peer, created: Date(), place: shares.restore(1, of: .unfinishedUploads, for: peer),
            bytes: shares.restore(Int(clamping: offset), of: .unfinishedBytes, for: peer), held: offset,
            announced: upload.form.length ?? 0)
    }

    private func held(for upload: Store.Unfinished) -> Int64 {
        table.withLock { $0.entries[upload.id]?.held ?? .max }
    }

    private func missingElsewhere(_ peer: PeerAddress?, except id: ResumptionID) -> Int64 {
        table.withLock { $0.missing(of: peer, except: id) }
    }

    private func check(_ count: Int64, _ missing: Int64, _ bytes: ShareAccount.Hold) throws(UploadProblem) {
        let (sum, isOver) = count.addingReportingOverflow(missing)
        try bytes.check(Int(clamping: isOver ? .max : sum))
    }

    /// Counts the uploads from before the start for their clients, if the store knows the clients.
    private func load() async throws {
        let isFirst = table.withLock { table in
            defer { table.isLoaded = true }
            return !table.isLoaded
        }
        guard isFirst else { return }
        let uploads: [Store.Unfinished]
        do {
            uploads = try await store.unfinishedUploads()
        } catch {
            table.withLock { $0.isLoaded = false }
            throw error
        }
        for upload in uploads {
            guard case .unfinished(let offset) = upload.progress else { continue }
            let entry = restored(upload, at: offset, for: upload.form.client)
            table.withLock { $0.entries[upload.id] = $0.entries[upload.id] ?? entry }
        }
    }

    // MARK: - Making room

    /// Reserves an amount. If a limit is reached, discards other uploads and tries again.
    ///
    /// - Parameter isOwn: Whether only uploads of the same address are discarded. Defaults to `false`.
    private func withRoom<Value>(
        for peer: PeerAddress?, isOwn: Bool = false, _ take: () throws(UploadProblem) -> Value
    ) async throws -> Value {
        while true {
            do throws(UploadProblem) {
                return try take()
            } catch {
                if !table.withLock({ $0.removeEnded(now: Date()) }).isEmpty { continue }
                if let upload = worthless(for: peer, isOwn: isOwn), await giveWay(upload) { continue }
                guard await forgetEndedElsewhere() else { throw error }
            }
        }
    }

    /// Forgets uploads that another process has finished or discarded. Returns whether any uploads were forgotten.
    private func forgetEndedElsewhere() async -> Bool {
        let now = ContinuousClock.now
        let uploads = table.withLock { table -> [Store.Unfinished] in
            guard table.lastLook.map({ $0.duration(to: now) > Self.lookInterval }) ?? true else { return [] }
            table.lastLook = now
            return table.entries.values.map(\.upload).filter(\.lock.isIdle)
        }
        // Only some uploads are checked, because a distant store answers slowly.
        let chosen = uploads.shuffled().prefix(Self.maximumLooks)
        return await withTaskGroup(of: Bool.self) { group in
            var isAny = false
            for (index, upload) in chosen.enumerated() {
                if index >= 8, let hasEnded = await group.next() { isAny = isAny || hasEnded }
                group.addTask { await self.forgetIfEnded(upload) }
            }
            return await group.reduce(isAny) { $0 || $1 }
        }
    }

    private func forgetIfEnded(_ upload: Store.Unfinished) async -> Bool {
        let hasEnded = try? await upload.lock.withLockIfIdle {
            switch try await upload.durableProgress() {
            case .unfinished: false
            case .finished, .gone: true
            }
        }
        guard hasEnded == true else { return false }
        ended(upload)
        return true
    }

    /// The upload to discard: the oldest unused upload of the address with the most uploads; `nil` if there is none.
    /// Only `peer` and addresses with more uploads than `peer` are considered; with `isOwn`, only `peer`.
    private func worthless(for peer: PeerAddress?, isOwn: Bool, now: Date = Date()) -> Store.Unfinished? {
        let entries = table.withLock { Array($0.entries.values) }
        let counts = entries.reduce(into: [PeerAddress?: Int]()) { $0[$1.peer, default: 0] += 1 }
        let own = counts[peer] ?? 0
        func count(_ entry: Entry) -> Int { counts[entry.peer] ?? 0 }
        let candidates = entries.filter { entry in
            entry.worthless <= now && entry.upload.lock.isIdle
                && (entry.peer == peer || !isOwn && count(entry) > own)
        }
        return candidates.max { first, second in
            count(first) == count(second) ? first.worthless > second.worthless : count(first) < count(second)
        }?.upload
    }

    /// Discards an upload, unless a request now uses it. Returns whether the caller may try again to make room: `false`
    /// only if discarding failed.
    private func giveWay(_ upload: Store.Unfinished) async -> Bool {
        do {
            _ = try await upload.lock.withLockIfIdle {
                switch try? await upload.durableProgress() {
                case .unfinished(let offset)? where offset > held(for: upload):
                    // Another process has appended to the upload, and its client may append more.
                    adopt(upload, at: offset, for: nil)
                    return
                case .finished: break
                default: try await upload.discard()
                }
                ended(upload)
            }
            return true
        } catch {
            return false
        }
    }
}

/// The paths of unfinished uploads, below the upload path.
package enum ResumptionPath {
    static let name = "resumable"

    package static func folder(below uploadPath: String) -> String {
        (uploadPath.hasSuffix("/") ? uploadPath : uploadPath + "/") + name
    }

    package static func contains(_ path: String, below uploadPath: String) -> Bool {
        let segments = path.split(separator: "/")
        return segments.count > 1 && segments.dropLast() == (uploadPath + "/" + name).split(separator: "/")[...]
    }
}
