import HTTPTypes
import Hummingbird
import Logging
import PostcardForm

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Receives the form of a request and responds with its record, or refuses it.
struct Reception<Store: UploadStore>: Sendable {
    let store: Store
    let options: UploadOptions
    let meter: UploadMeter
    /// Limits the memory for responses, and the open files.
    let budget: ResponseBudget
    private let held: HeldBytes

    init(store: Store, options: UploadOptions, meter: UploadMeter, budget: ResponseBudget) {
        self.store = store
        self.options = options
        self.meter = meter
        self.budget = budget
        held = HeldBytes(maximum: options.maximumHeldBytes)
    }

    func response(to request: Request, logger: Logger) async throws -> Response {
        await response(showing: try await receive(request, logger: logger).record, logger: logger)
    }

    /// Receives the form of a request, and counts and reports what became of it.
    ///
    /// - Parameter key: The key under which the form becomes a record. Defaults to the one in the request.
    func receive(
        _ request: Request, under key: UploadKey? = nil, logger: Logger
    ) async throws -> CommittedUpload {
        do {
            let upload = try await store(request, under: key, logger: logger)
            meter.received(upload)
            UploadReport.set(upload.isRepetition ? .repeated(upload.record.id) : .recorded(upload.record))
            return upload
        } catch let problem as UploadProblem {
            meter.refused(problem)
            throw problem
        }
    }

    func response(showing record: UploadRecord, logger: Logger) async -> Response {
        Response(
            status: .created,
            headers: [.contentType: "application/json", .location: record.url, .xContentTypeOptions: "nosniff"],
            body: await body(of: record, logger: logger))
    }

    /// The body of a response: the stored bytes, or for a small record the JSON, which is faster to encode than to
    /// read.
    private func body(of record: UploadRecord, logger: Logger) async -> ResponseBody {
        guard record.expectedBytes > Self.smallBytes else {
            return ResponseBody(byteBuffer: ByteBuffer(bytes: record.json()))
        }
        do {
            return try await body(ofRecord: record.id, priority: .immediate, logger: logger)
        } catch {
            // Another request has deleted it, or it cannot be opened now. The form was received in any case.
            return ResponseBody(byteBuffer: ByteBuffer(bytes: record.json()))
        }
    }

    /// The size of a record of which several thousand may be in memory.
    private static var smallBytes: Int { 4 << 10 }

    /// The stored bytes of a record. The form was received, so its response does not wait for clients that do not read
    /// theirs.
    ///
    /// - Parameter priority: Whether the file has room in any case.
    func body(
        ofRecord id: UploadID, priority: ResponseBudget.Priority, logger: Logger
    ) async throws -> ResponseBody {
        let held = try budget.holdFile(priority: priority)
        do {
            if let stored = try await store.openRecord(id) {
                return budget.body(of: stored, held, priority: .immediate)
            }
        } catch let error as UploadStoreError {
            logger.error("Could not read a record", metadata: ["upload": "\(id)", "error": "\(error)"])
            throw UploadProblem.unreadable
        }
        throw UploadProblem.uploadNotFound
    }

    private func store(
        _ request: Request, under key: UploadKey?, logger: Logger
    ) async throws -> CommittedUpload {
        let form = try form(for: request)
        let key = try key ?? UploadKey(of: request, scope: options.keyScope)
        let peer = UploadConnection.current?.peer
        var body = request.body.makeAsyncIterator()
        try meter.checkRoom(for: peer, options)
        do {
            // Before `100 Continue`, because a store without room throws here.
            let announced = request.headers[.contentLength].flatMap { Int64($0) }
            let upload = try await store.beginUpload(under: key, announcedBytes: announced)
            let beginning: ByteBuffer?
            let file: ResponseBudget.HeldFile
            do {
                beginning = try await request.beginning(of: &body)
                file = try budget.holdUploadedFile(for: peer)
                try meter.begins(for: peer, options)
            } catch {
                await upload.discard()
                throw form.problem(for: error)
            }
            let start = ContinuousClock.now
            defer {
                withExtendedLifetime(file) {}
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

    /// Makes the form of a request. Checks the head of the request.
    @inline(never)
    private func form(for request: Request) throws -> IncomingForm {
        IncomingForm(
            parser: try parser(for: request), rules: options.rules, maximumRecordBytes: options.maximumRecordBytes,
            held: held)
    }

    /// Makes the checker of a form that arrives in several requests. Checks the head of the request.
    @inline(never)
    func checker(for request: Request) throws -> ArrivingFormChecker {
        ArrivingFormChecker(parser: try parser(for: request), rules: options.rules)
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
