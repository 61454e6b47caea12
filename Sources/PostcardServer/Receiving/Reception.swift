#if Server
import HTTPTypes
import Hummingbird
import Logging
import PostcardForm

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Takes a request with a form and answers it with the record, or refuses it.
struct Reception<Store: UploadStore>: Sendable {
    let store: Store
    let options: UploadOptions
    /// Told of every record.
    var live: LiveEvents?

    func answer(_ request: Request, logger: Logger) async throws -> Response {
        do {
            let record = try await receive(request)
            logger.info(
                "Received a form",
                metadata: [
                    "upload": "\(record.id)", "fields": "\(record.fields.count)", "files": "\(record.files.count)",
                    "bytes": "\(record.files.reduce(0) { $0 + $1.size })",
                ])
            live?.publish(.uploaded(record))
            let json = try record.json()
            return Response(
                status: .created,
                headers: [.contentType: "application/json", .location: record.url, .xContentTypeOptions: "nosniff"],
                body: ResponseBody(byteBuffer: ByteBuffer(bytes: json)))
        } catch let problem as UploadProblem {
            logger.info("Refused a form", metadata: ["status": "\(problem.status.code)", "code": "\(problem.code)"])
            throw problem
        } catch let error as UploadStoreError {
            let problem = UploadProblem.store(error)
            if problem.status.kind == .serverError {
                logger.error("Could not store a form", metadata: ["error": "\(error)"])
            } else {
                logger.info(
                    "Refused a form", metadata: ["status": "\(problem.status.code)", "code": "\(problem.code)"])
            }
            throw problem
        }
    }

    private func receive(_ request: Request) async throws -> UploadRecord {
        let parser = try parser(for: request)
        let key = try IdempotencyKey(of: request)
        if request.headers[.expect]?.lowercased() == "100-continue" {
            try await UploadConnection.current?.askForBody()
        }
        let upload = try await store.beginUpload(under: key)
        var form = IncomingForm(
            parser: parser, rules: options.rules, maximumRecordBytes: options.maximumRecordBytes)
        do {
            try await form.receive(request.body, into: upload)
            return try await upload.commit(fields: form.fields)
        } catch {
            await upload.discard()
            throw form.problem(for: error)
        }
    }

    /// Judges the request by its head alone.
    private func parser(for request: Request) throws(UploadProblem) -> FormParser {
        // A length that no number holds is the decoder's to have judged: it is more than any limit.
        if let length = request.headers[.contentLength],
            Int64(length).map({ $0 > options.limits.maximumBodyBytes }) ?? true
        {
            throw .bodyTooLarge(announced: length, limits: options.limits)
        }
        guard request.headers[values: .contentType].count <= 1 else { throw .repeatedContentType }
        if let encoding = request.headers[.contentEncoding], encoding.lowercased() != "identity" {
            throw .encodedContent
        }
        do {
            return try FormParser(contentType: request.headers[.contentType] ?? "", limits: options.limits)
        } catch {
            throw UploadProblem(error)
        }
    }
}
#endif
