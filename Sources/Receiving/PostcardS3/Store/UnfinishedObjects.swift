import Logging
import NIOCore
import PostcardFoundation
import PostcardStore

/// The stored facts about an unfinished upload that are known at its creation.
struct UnfinishedFacts: Sendable, Codable {
    /// The Content-Type of the form, with its boundary.
    let contentType: String
    /// The digest of the idempotency key under which the form becomes a record.
    let keyDigest: String
    let created: Date
    let expires: Date
    /// The length of the form, in bytes; `nil` if the first request did not declare it.
    let length: Int64?
    let reprDigest: String?
    let wantReprDigest: String?
    /// The Content-Disposition parameters that name the file, if the upload is not a form.
    var fileParameters: String?

    /// Whether the facts are valid for an upload. Other programs may have written them.
    var arePossible: Bool {
        let times = UnfinishedForm.possibleTimes
        return times.contains(created) && times.contains(expires) && length ?? 0 >= 0
    }
}

/// The objects of an unfinished upload. <doc:HowUploadsAreStored> explains the order of the requests.
struct UnfinishedObjects: Sendable {
    /// An object with bytes of the upload, and their offset in the upload.
    struct Chunk: Sendable {
        let offset: Int64
        /// The size of the object; 0 if the chunk's metadata names another object with the bytes.
        let size: Int64
    }

    /// What a listing shows about the upload.
    struct Listing: Sendable {
        var chunks: [Chunk] = []
        /// The length of the form, in bytes, if a request after the first has declared it.
        var length: Int64?
    }

    /// The final state of the upload.
    enum End: Sendable {
        case finished(FinalResponse)
        case discarded
    }

    let objects: ObjectStore
    /// The text of the upload's identifier.
    let id: String

    var folder: String { ObjectName.folder(ofUnfinished: id) }

    // MARK: - Facts

    func create(_ facts: UnfinishedFacts) async throws {
        // If the object exists, an earlier try of this request made it: no other upload has its identifier.
        _ = try await objects.create(ObjectName.form(ofUnfinished: id), ByteBuffer(bytes: JSONEncoder().encode(facts)))
    }

    func facts() async throws -> UnfinishedFacts? {
        let key = ObjectName.form(ofUnfinished: id)
        guard let facts: UnfinishedFacts = try await decoded(key) else { return nil }
        guard facts.arePossible else {
            throw UploadStoreError(.damaged, "\(objects.address(of: key)) says what cannot be true of an upload.")
        }
        return facts
    }

    /// Stores the length of the upload as the name of an object, so that listings contain it.
    func setLength(_ length: Int64) async throws {
        try await objects.put(ObjectName.length(length, ofUnfinished: id), ByteBuffer())
    }

    /// Reads and decodes an object; `nil` if the object does not exist.
    private func decoded<Value: Decodable>(_ key: String) async throws -> Value? {
        guard let (_, json) = try await objects.get(key) else { return nil }
        do {
            return try JSONDecoder().decode(Value.self, from: Data(json.readableBytesView))
        } catch {
            let name = objects.address(of: key)
            throw UploadStoreError(.damaged, "\(name) is not as it was written: \(error)", underlyingError: error)
        }
    }

    // MARK: - Bytes

    func listing() async throws -> Listing {
        var listing = Listing()
        try await objects.listAll(folder) { page in
            for object in page.objects {
                if let offset = ObjectName.offset(ofChunk: object.key) {
                    listing.chunks.append(Chunk(offset: offset, size: object.size))
                } else if let length = ObjectName.length(ofKey: object.key) {
                    // Requests that declare different lengths are refused sooner or later.
                    listing.length = min(listing.length ?? .max, length)
                }
            }
        }
        return listing
    }

    /// The end offset of the bytes in the chunks; `nil` if there is a gap between them.
    func end(of chunks: [Chunk]) async throws -> Int64? {
        var end: Int64 = 0
        for (index, chunk) in chunks.enumerated() {
            guard chunk.offset == end else { return nil }
            if chunk.size > 0 {
                end += chunk.size
            } else if index + 1 < chunks.count {
                end = chunks[index + 1].offset
            } else {
                end += try await held(chunk).size
            }
        }
        return end
    }

    func pieces(of chunks: [Chunk]) async throws -> [ObjectFile.Piece] {
        var pieces: [ObjectFile.Piece] = []
        for chunk in chunks {
            let (key, size) =
                try await chunk.size > 0
                ? (ObjectName.chunk(at: chunk.offset, ofUnfinished: id), chunk.size) : held(chunk)
            pieces.append(ObjectFile.Piece(key: key, offset: chunk.offset, size: size))
        }
        return pieces
    }

    /// Finds the separate object that contains the bytes of a chunk whose own object is empty.
    private func held(_ chunk: Chunk) async throws -> (key: String, size: Int64) {
        let key = ObjectName.chunk(at: chunk.offset, ofUnfinished: id)
        guard let fields = try await objects.head(key)?.metadata, let name = fields["held"],
            let size = fields["held-size"].flatMap({ Int64($0) }), size > 0, ListedObject.sizes.contains(size)
        else { throw UploadStoreError(.unavailable, "A chunk lost what was stored with it.") }
        return (ObjectName.held(name, ofUnfinished: id), size)
    }

    /// Stores bytes at an offset. `append` is a random text that all chunks of a request share. `fields` are the
    /// metadata of an empty chunk. Throws `UploadStoreError` with the code `overtaken` if another request has stored
    /// bytes at the offset.
    func createChunk(
        at offset: Int64, _ bytes: ByteBuffer, of append: String, fields: [String: String] = [:]
    ) async throws {
        let key = ObjectName.chunk(at: offset, ofUnfinished: id)
        var metadata = fields
        metadata["append"] = append
        guard case .exists = try await objects.create(key, bytes, metadata: metadata) else { return }
        // An earlier try of this request may have created the chunk.
        guard try await objects.head(key)?.metadata["append"] == append else { throw UploadStoreError.overtaken }
    }

    // MARK: - End

    func end() async throws -> End? {
        let key = ObjectName.end(ofUnfinished: id)
        guard let head = try await objects.head(key) else { return nil }
        guard head.size > 0, let response: FinalResponse = try await decoded(key) else { return .discarded }
        return .finished(response)
    }

    /// Stores the response, and removes the bytes of the upload. Throws if the response could not be stored. Bytes that
    /// could not be removed are left to the sweep.
    func finish(_ response: FinalResponse, _ logger: Logger) async throws {
        let json = try ByteBuffer(bytes: JSONEncoder().encode(response))
        // If a response exists, another receiver has finished the upload.
        _ = try await objects.create(ObjectName.end(ofUnfinished: id), json)
        do {
            try await removeBytes()
        } catch {
            logger.warning("Could not remove the bytes of a finished upload", metadata: ["error": "\(error)"])
        }
    }

    /// Removes the bytes of a finished upload.
    func removeBytes() async throws {
        for part in [ObjectName.chunks(ofUnfinished: id), ObjectName.heldFolder(ofUnfinished: id)] {
            try await objects.deleteAll(part)
        }
    }

    /// Discards the upload. An object marks it as discarded, so that no receiver counts the bytes during their removal.
    func discard() async throws {
        try await objects.put(ObjectName.end(ofUnfinished: id), ByteBuffer())
        try await objects.delete(ObjectName.form(ofUnfinished: id))
        try await removeBytes()
        try await objects.deleteAll(ObjectName.lengths(ofUnfinished: id))
    }
}
