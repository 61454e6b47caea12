public import PostcardFoundation
public import PostcardStore
import Synchronization

/// An unfinished upload in an ``S3UploadStore``. Any receiver can append to it.
public final class S3UnfinishedUpload: UnfinishedUpload {
    private struct State {
        var length: Int64?
        var progress = UnfinishedUploadProgress.unfinished(offset: 0)
    }

    public let id: ResumptionID
    public let lock: UploadLock
    let objects: UnfinishedObjects
    let store: S3UploadStore
    private let facts: UnfinishedFacts
    private let state: Mutex<State>

    init(_ id: ResumptionID, _ facts: UnfinishedFacts, isNew: Bool, in store: S3UploadStore) {
        self.id = id
        self.facts = facts
        self.store = store
        objects = UnfinishedObjects(objects: store.objects, id: id.text)
        lock = UploadLock(isReserved: isNew)
        state = Mutex(State(length: facts.length))
    }

    public var form: UnfinishedForm {
        var form = UnfinishedForm(
            contentType: facts.contentType, key: UploadKey(digest: facts.keyDigest),
            length: state.withLock { $0.length }, reprDigest: facts.reprDigest, wantReprDigest: facts.wantReprDigest)
        form.fileParameters = facts.fileParameters
        return form
    }

    public var expires: Date { facts.expires }
    public var progress: UnfinishedUploadProgress { state.withLock { $0.progress } }

    /// The number of stored bytes of the upload, as far as this receiver knows.
    var offset: Int64 {
        if case .unfinished(let offset) = progress { offset } else { 0 }
    }

    /// Asks the object store for the progress of the upload.
    ///
    /// - Throws: `UploadStoreError` if the object store fails.
    public func durableProgress() async throws -> UnfinishedUploadProgress {
        let progress = try await storing { try await current() }
        return state.withLock { state in
            // A concurrent request may have newer information.
            if progress.isLater(than: state.progress) { state.progress = progress }
            return state.progress
        }
    }

    private func current() async throws -> UnfinishedUploadProgress {
        guard progress != .gone else { return .gone }
        let known = offset
        // The chunks are listed before the end is read, because bytes are only removed after the end is stored. Without
        // an end, the listing therefore contains all bytes that were stored before.
        let listing = try await objects.listing()
        switch try await objects.end() {
        case .discarded: return .gone
        case .finished(let response):
            if let record = response.record, try await store.keys.state(of: record) != .live {
                // Unfinished data of a deleted record must not remain.
                try await objects.discard()
                return .gone
            }
            return .finished(length: response.length, record: response.record)
        case nil:
            if let length = listing.length {
                state.withLock { $0.length = min($0.length ?? length, length) }
            }
            // A gap: the client may no longer have the missing bytes, because they were reported as stored.
            guard let offset = try await objects.end(of: listing.chunks) else { return .gone }
            guard offset >= known else {
                throw UploadStoreError(.unavailable, "The object store does not list what was stored.")
            }
            return .unfinished(offset: offset)
        }
    }

    public func setLength(_ length: Int64) async throws {
        guard form.length == nil else { return }
        try await storing { try await objects.setLength(length) }
        state.withLock { $0.length = length }
    }

    public func makeAppender(isRevertible: Bool) async throws -> S3UploadAppender {
        S3UploadAppender(to: self, isRevertible: isRevertible)
    }

    func advance(to offset: Int64) {
        state.withLock { state in
            guard case .unfinished(let current) = state.progress, offset > current else { return }
            state.progress = .unfinished(offset: offset)
        }
    }

    public func openContent() async throws -> any StoredFile {
        let pieces = try await storing { try await objects.pieces(of: objects.listing().chunks) }
        let file = ObjectFile(store.objects, pieces)
        // While another receiver removes the chunks, the listing may lack the first ones.
        let isWhole =
            zip(pieces, pieces.dropFirst()).allSatisfy { $0.end == $1.offset } && pieces.first?.offset ?? 0 == 0
        guard isWhole, file.size == offset else {
            throw UploadStoreError(
                .unavailable, "Another receiver has changed the upload in the meantime.",
                advice: "Ask for the offset, and resume there.")
        }
        return file
    }

    /// Stores the response until the upload expires, and removes the bytes of the upload.
    ///
    /// - Parameters:
    ///   - response: The response for a client that asks again.
    ///   - options: If the options keep no responses, the upload is discarded. Any other maximum is ignored, because no
    ///     receiver knows how many responses the bucket has.
    public func finish(with response: FinalResponse, options: UnfinishedUploadOptions) async throws {
        guard options.maximumKeptResponses > 0 else { return try await discard() }
        try await storing { try await objects.finish(response, store.logger) }
        state.withLock { $0.progress = .finished(length: response.length, record: response.record) }
    }

    public func response() async throws -> FinalResponse {
        guard case .finished(let response) = try await storing({ try await objects.end() }) else {
            throw UploadStoreError(.unavailable, "The response of an upload is gone.")
        }
        return response
    }

    public func discard() async throws {
        try await storing { try await objects.discard() }
        state.withLock { $0.progress = .gone }
    }
}

extension UnfinishedUploadProgress {
    /// Whether this progress is newer: an upload can change from `other` to it, but not back.
    fileprivate func isLater(than other: UnfinishedUploadProgress) -> Bool {
        switch (self, other) {
        case (.unfinished(let offset), .unfinished(let earlier)): offset > earlier
        case (.gone, _), (.finished, .unfinished): true
        case (.unfinished, _), (.finished, _): false
        }
    }
}

/// The unfinished uploads that this receiver's requests use. Requests for the same upload share one object.
final class UnfinishedTable: Sendable {
    private struct Reference {
        weak var upload: S3UnfinishedUpload?
    }

    private let references = Mutex<[ResumptionID: Reference]>([:])

    subscript(_ id: ResumptionID) -> S3UnfinishedUpload? { references.withLock { $0[id]?.upload } }

    /// Adds an upload unless its identifier is in use. Returns the upload with the identifier.
    func add(_ upload: S3UnfinishedUpload) -> S3UnfinishedUpload {
        references.withLock { references in
            if let known = references[upload.id]?.upload { return known }
            references = references.filter { $0.value.upload != nil }
            references[upload.id] = Reference(upload: upload)
            return upload
        }
    }
}

extension S3UploadStore: ResumableUploadStore {
    public func createUnfinishedUpload(
        _ id: ResumptionID, of form: UnfinishedForm, expires: Date
    ) async throws -> S3UnfinishedUpload {
        let facts = UnfinishedFacts(
            contentType: form.contentType, keyDigest: form.key.digest, created: objects.bucket.clock(),
            expires: expires, length: form.length, reprDigest: form.reprDigest, wantReprDigest: form.wantReprDigest,
            fileParameters: form.fileParameters)
        let upload = S3UnfinishedUpload(id, facts, isNew: true, in: self)
        try await storing { try await upload.objects.create(facts) }
        return unfinished.add(upload)
    }

    /// An empty list, because uploads only count for the receivers that append to them.
    public func unfinishedUploads() async throws -> [S3UnfinishedUpload] { [] }

    public func unfinishedUpload(_ id: ResumptionID) async throws -> S3UnfinishedUpload? {
        if let known = unfinished[id] { return known.expires > objects.bucket.clock() ? known : nil }
        let facts = try await storing { try await UnfinishedObjects(objects: objects, id: id.text).facts() }
        guard let facts, facts.expires > objects.bucket.clock() else { return nil }
        return unfinished.add(S3UnfinishedUpload(id, facts, isNew: false, in: self))
    }
}
