public import PostcardFoundation
public import PostcardStore
import Synchronization

/// The unfinished uploads that requests of this receiver use, so that they share an object.
final class UnfinishedTable: Sendable {
    private struct Reference {
        weak var upload: S3UnfinishedUpload?
    }

    private let references = Mutex<[ResumptionID: Reference]>([:])

    subscript(_ id: ResumptionID) -> S3UnfinishedUpload? { references.withLock { $0[id]?.upload } }

    /// Adds an upload, if there is none of its identifier.
    ///
    /// - Returns: The upload of the identifier.
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

    /// None: an upload takes up room of the receivers that append to it.
    public func unfinishedUploads() async throws -> [S3UnfinishedUpload] { [] }

    public func unfinishedUpload(_ id: ResumptionID) async throws -> S3UnfinishedUpload? {
        if let known = unfinished[id] { return known.expires > objects.bucket.clock() ? known : nil }
        let facts = try await storing { try await UnfinishedObjects(objects: objects, id: id.text).facts() }
        guard let facts, facts.expires > objects.bucket.clock() else { return nil }
        return unfinished.add(S3UnfinishedUpload(id, facts, isNew: false, in: self))
    }
}
