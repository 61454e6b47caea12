import Crypto
import HTTPTypes
import Hummingbird
import Logging
import PostcardReception
import PostcardStore
import PostcardWire

/// Responds to requests that list, read and delete stored uploads.
struct Archive<Store: UploadStore>: Sendable {
    let store: Store
    let budget: ResponseBudget
    let meter: UploadMeter

    /// The default number of records in a listing.
    private static var usualLimit: Int { 50 }
    private static var maximumLimit: Int { 1000 }

    func list(_ request: Request, on connection: UploadConnection?, logger: Logger) async throws -> Response {
        let limit = try limit(request)
        let after = try request.uri.queryParameters["after"].map { text in
            guard let id = UploadID(text) else { throw UploadProblem.invalidQuery("after", expected: "an upload's id") }
            return id
        }
        let hold = try budget.shares.take(of: .responses, on: connection)
        // One more record than fits on the page shows whether there is a next page.
        let found = try await reading(logger) { try await store.identifiers(limit: limit + 1, after: after) }
        let page = found.prefix(limit)
        let next = found.count > limit ? page.last : nil
        return Response(
            status: .ok, headers: headers,
            body: listing(Array(page), next: next, hold, on: connection, logger: logger))
    }

    private func limit(_ request: Request) throws -> Int {
        guard let text = request.uri.queryParameters["limit"] else { return Self.usualLimit }
        guard let limit = Int(text), (1...Self.maximumLimit).contains(limit) else {
            throw UploadProblem.invalidQuery("limit", expected: "a number from 1 to \(Self.maximumLimit)")
        }
        return limit
    }

    /// Sends the stored records one after the other, so that a long listing is never completely in memory.
    private func listing(
        _ ids: [UploadID], next: UploadID?, _ hold: ShareAccount.Hold, on connection: UploadConnection?, logger: Logger
    ) -> ResponseBody {
        ResponseBody { [store, budget, meter] writer in
            try await writer.write(ByteBuffer(string: #"{"uploads":["#))
            var separator = ""
            for id in ids {
                // Damaged uploads and uploads deleted meanwhile are left out.
                let record: any StoredFile
                do {
                    guard let opened = try await store.openRecord(id) else { continue }
                    record = opened
                } catch {
                    logger.error("Left a record out of a listing", metadata: ["upload": "\(id)", "error": "\(error)"])
                    meter.storeFailed(.read, error)
                    continue
                }
                if !separator.isEmpty { try await writer.write(ByteBuffer(string: separator)) }
                try await budget.send(record, 0..<record.size, to: &writer, on: connection)
                separator = ",\n"
            }
            withExtendedLifetime(hold) {}
            let link = next.map { "\"\($0)\"" } ?? "null"
            try await writer.write(ByteBuffer(string: #"],"next":\#(link)}"#))
            try await writer.finish(nil)
        }
    }

    func record(
        _ request: Request, id: String?, on connection: UploadConnection?, logger: Logger
    ) async throws -> Response {
        let hold = try budget.shares.take(of: .responses, on: connection)
        guard let id = id.flatMap({ UploadID($0) }),
            let record = try await reading(logger, { try await store.openRecord(id) })
        else {
            throw UploadProblem.uploadNotFound
        }
        var headers = headers
        if request.headers.wantsDigest(.wantReprDigest) {
            headers[.reprDigest] = try await reading(logger) { try await digest(of: record) }?.fieldValue
        }
        return Response(status: .ok, headers: headers, body: budget.body(of: record, hold, on: connection))
    }

    private func digest(of record: any StoredFile) async throws -> BodyDigest? {
        var hash = SHA256()
        var offset: Int64 = 0
        while offset < record.size {
            let piece = try await record.read(at: offset, count: 64 << 10)
            guard piece.readableBytes > 0 else { break }
            piece.withUnsafeReadableBytes { hash.update(bufferPointer: $0) }
            offset += Int64(piece.readableBytes)
        }
        return BodyDigest(hash.finalize())
    }

    func delete(id: String?, on connection: UploadConnection?, logger: Logger) async throws -> Response {
        guard let id = id.flatMap({ UploadID($0) }),
            try await refusing(.notDeleted, .delete, logger, { try await store.delete(id) })
        else {
            throw UploadProblem.uploadNotFound
        }
        connection?.report.note(.deleted(id))
        return Response(status: .noContent)
    }

    func file(
        _ request: Request, id: String?, index: String?, on connection: UploadConnection?, logger: Logger
    ) async throws -> Response {
        guard let id = id.flatMap({ UploadID($0) }) else { throw UploadProblem.uploadNotFound }
        let hold = try budget.shares.take(of: .responses, on: connection)
        guard let index = index.flatMap({ Int($0) }),
            let described = try await reading(logger, { try await store.describedFile(index, of: id) }),
            let content = try await reading(logger, { try await open(index, of: id, described) })
        else {
            guard try await reading(logger, { try await store.openRecord(id) }) != nil else {
                throw UploadProblem.uploadNotFound
            }
            throw UploadProblem.fileNotFound
        }
        return FileResponse(file: described, content: content, hold: hold, budget: budget, connection: connection)
            .response(to: request)
    }

    /// - Throws: `UploadStoreError` if the file's length differs from its record. Then the recorded digest is wrong.
    private func open(
        _ index: Int, of id: UploadID, _ described: UploadRecord.File
    ) async throws -> (any StoredFile)? {
        guard let content = try await store.openFile(index, of: id) else { return nil }
        guard content.size == described.size else {
            throw UploadStoreError(
                .unavailable, "File \(index) of upload \(id) has \(content.size) bytes instead of \(described.size).")
        }
        return content
    }

    private func reading<Value>(_ logger: Logger, _ body: () async throws -> Value) async throws -> Value {
        try await refusing(.unreadable, .read, logger, body)
    }

    private func refusing<Value>(
        _ problem: UploadProblem, _ operation: UploadMeter.StoreOperation, _ logger: Logger,
        _ body: () async throws -> Value
    ) async throws -> Value {
        do {
            return try await body()
        } catch let error as UploadStoreError {
            logger.error("\(problem.message)", metadata: ["error": "\(error)"])
            meter.storeFailed(operation, error)
            throw problem
        }
    }

    private var headers: HTTPFields {
        HTTPFields(content: "application/json", cacheControl: "no-cache")
    }
}
