#if Server
import HTTPTypes
import Hummingbird
import Logging

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Answers requests for what a store holds.
struct Archive<Store: UploadStore>: Sendable {
    let store: Store

    /// How many records a listing has unless asked for, and at most.
    private static var usualLimit: Int { 50 }
    private static var maximumLimit: Int { 1000 }

    func list(_ request: Request) async throws -> Response {
        let limit = try limit(request)
        let after = try request.uri.queryParameters["after"].map { text in
            guard let id = UploadID(text) else { throw UploadProblem.invalidQuery("after", expected: "an upload's id") }
            return id
        }
        // One more than wanted tells whether there is a next page.
        let found = try await refusing { try await store.identifiers(limit: limit + 1, after: after) }
        let page = found.prefix(limit)
        let next = found.count > limit ? page.last : nil
        return Response(status: .ok, headers: headers, body: listing(Array(page), next: next))
    }

    private func limit(_ request: Request) throws -> Int {
        guard let text = request.uri.queryParameters["limit"] else { return Self.usualLimit }
        guard let limit = Int(text), (1...Self.maximumLimit).contains(limit) else {
            throw UploadProblem.invalidQuery("limit", expected: "a number from 1 to \(Self.maximumLimit)")
        }
        return limit
    }

    /// Record after record, so that a long listing is never held whole.
    private func listing(_ ids: [UploadID], next: UploadID?) -> ResponseBody {
        ResponseBody { [store] writer in
            try await writer.write(ByteBuffer(string: #"{"uploads":["#))
            var separator = ""
            for id in ids {
                // An upload that was deleted meanwhile is left out.
                guard let record = try await store.record(id) else { continue }
                var line = ByteBuffer(string: separator)
                line.writeBytes(try record.json())
                try await writer.write(line)
                separator = ",\n"
            }
            let link = next.map { "\"\($0)\"" } ?? "null"
            try await writer.write(ByteBuffer(string: #"],"next":\#(link)}"#))
            try await writer.finish(nil)
        }
    }

    func record(_ request: Request, id: String?) async throws -> Response {
        let record = try await find(id)
        return Response(
            status: .ok, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: try record.json())))
    }

    func delete(id: String?, logger: Logger) async throws -> Response {
        guard let id = id.flatMap({ UploadID($0) }), try await refusing({ try await store.delete(id) }) else {
            throw UploadProblem.uploadNotFound
        }
        logger.info("Deleted an upload", metadata: ["upload": "\(id)"])
        return Response(status: .noContent)
    }

    func file(_ request: Request, id: String?, index: String?) async throws -> Response {
        let record = try await find(id)
        guard let index = index.flatMap({ Int($0) }), record.files.indices.contains(index),
            let content = try await refusing({ try await store.openFile(index, of: record.id) })
        else {
            throw UploadProblem.fileNotFound
        }
        return FileAnswer(file: record.files[index], content: content).response(to: request)
    }

    private func find(_ id: String?) async throws -> UploadRecord {
        guard let id = id.flatMap({ UploadID($0) }), let record = try await refusing({ try await store.record(id) })
        else {
            throw UploadProblem.uploadNotFound
        }
        return record
    }

    private func refusing<Value>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch let error as UploadStoreError {
            throw UploadProblem.store(error)
        }
    }

    private var headers: HTTPFields {
        [.contentType: "application/json", .cacheControl: "no-cache", .xContentTypeOptions: "nosniff"]
    }
}
#endif
