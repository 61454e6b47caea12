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
    let meter: UploadMeter
    /// Told of every record.
    let live: LiveEvents?
    /// The memory that answers take.
    let budget: AnswerBudget
    private let held: HeldBytes

    init(store: Store, options: UploadOptions, meter: UploadMeter, live: LiveEvents?, budget: AnswerBudget) {
        self.store = store
        self.options = options
        self.meter = meter
        self.live = live
        self.budget = budget
        held = HeldBytes(maximum: options.maximumHeldBytes)
    }

    /// - Parameter key: What the form is known by, where that is not for the request to say.
    func answer(_ request: Request, under key: IdempotencyKey? = nil, logger: Logger) async throws -> Response {
        do {
            let upload = try await receive(request, under: key, logger: logger)
            let record = upload.record
            meter.received(upload)
            if !upload.isRepetition { live?.publish(.uploaded(record)) }
            return Response(
                status: .created,
                headers: [.contentType: "application/json", .location: record.url, .xContentTypeOptions: "nosniff"],
                body: await body(of: record, logger: logger))
        } catch let problem as UploadProblem {
            meter.refused(problem)
            throw problem
        }
    }

    /// The answer's body: the stored bytes, or those of a small record, which are faster made again than read.
    private func body(of record: UploadRecord, logger: Logger) async -> ResponseBody {
        guard record.expectedBytes > Self.smallBytes else {
            return ResponseBody(byteBuffer: ByteBuffer(bytes: record.json()))
        }
        do {
            return try await body(ofRecord: record.id, logger: logger)
        } catch {
            // Someone deleted it in this moment, or it cannot be opened now. It was received all the same.
            return ResponseBody(byteBuffer: ByteBuffer(bytes: record.json()))
        }
    }

    /// A record of which several thousand may be in memory.
    private static var smallBytes: Int { 4 << 10 }

    /// The body of a record's answer, as it is stored. The form was received, so the answer does not wait for clients that
    /// do not read theirs.
    func body(ofRecord id: UploadID, logger: Logger) async throws -> ResponseBody {
        do {
            if let stored = try await store.openRecord(id) { return budget.body(of: stored, priority: .immediate) }
        } catch let error as UploadStoreError {
            logger.error("Could not read a record", metadata: ["upload": "\(id)", "error": "\(error)"])
            throw UploadProblem.unreadable
        }
        throw UploadProblem.uploadNotFound
    }

    private func receive(
        _ request: Request, under key: IdempotencyKey?, logger: Logger
    ) async throws -> CommittedUpload {
        let form = try form(for: request)
        let key = try key ?? IdempotencyKey(of: request, scope: options.keyScope)
        let peer = UploadConnection.current?.peer
        var body = request.body.makeAsyncIterator()
        try meter.checkRoom(for: peer, options)
        do {
            // Before the body is asked for, because a store without room for it says so here.
            let announced = request.headers[.contentLength].flatMap { Int64($0) }
            let upload = try await store.beginUpload(under: key, announcedBytes: announced)
            let beginning: ByteBuffer?
            do {
                beginning = try await request.beginning(of: &body)
                try meter.begins(for: peer, options)
            } catch {
                await upload.discard()
                throw form.problem(for: error)
            }
            let start = ContinuousClock.now
            defer {
                held.giveBack(form.recordBytes)
                meter.ended(for: peer, bodyBytes: form.bodyBytes, after: start.duration(to: .now))
            }
            do {
                try await form.receive(beginning, &body, into: upload)
            } catch {
                await upload.discard()
                throw form.problem(for: error)
            }
            return try await finish(upload, with: form, logger: logger)
        } catch let error as UploadStoreError {
            let problem = UploadProblem.store(error)
            if problem.status.kind == .serverError {
                logger.error("Could not store a form", metadata: ["error": "\(error)"])
            }
            throw problem
        }
    }

    private func finish(
        _ upload: some PendingUpload, with form: IncomingForm, logger: Logger
    ) async throws -> CommittedUpload {
        do {
            if let screen = options.screen {
                try await Self.pass(try await upload.finishedFiles(), by: screen, logger: logger)
            }
            return try await upload.commit(fields: form.fields)
        } catch {
            await upload.discard()
            throw form.problem(for: error)
        }
    }

    private static func pass(
        _ files: [FinishedFile], by screen: @Sendable (FinishedFile) async throws -> ScreeningVerdict, logger: Logger
    ) async throws {
        for (index, file) in files.enumerated() {
            let verdict: ScreeningVerdict
            do {
                verdict = try await screen(file)
            } catch {
                logger.error("Could not screen a file", metadata: ["file": "\(index)", "error": "\(error)"])
                throw UploadProblem.notScreened
            }
            if case .refused(let reason) = verdict { throw UploadProblem.fileRefused(index, reason: reason) }
        }
    }

    /// The form of a request. The head is judged by the call.
    @inline(never)
    private func form(for request: Request) throws -> IncomingForm {
        IncomingForm(
            parser: try parser(for: request), rules: options.rules, maximumRecordBytes: options.maximumRecordBytes,
            held: held)
    }

    /// What looks at the form of a request that is received in pieces. The head is judged by the call.
    @inline(never)
    func check(for request: Request) throws -> FormCheck {
        FormCheck(parser: try parser(for: request), rules: options.rules)
    }

    private func parser(for request: Request) throws(UploadProblem) -> FormParser {
        let contentType = try request.formContentType(limits: options.limits)
        do {
            return try FormParser(contentType: contentType, limits: options.limits)
        } catch {
            throw UploadProblem(error)
        }
    }
}
