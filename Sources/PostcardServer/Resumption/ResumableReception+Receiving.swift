import HTTPTypes
import Hummingbird
import Logging
import PostcardForm
import PostcardResumption

extension ResumableReception {
    /// What is wrong with bytes that are too many.
    private enum Excess: Error {
        case ofLength
        case ofMaximum
        /// All unfinished uploads together are too large.
        case ofAll
    }

    /// Takes the bytes of a request, and makes the upload a record where they are the last.
    ///
    /// - Parameter isWhole: Whether the request brings the upload from its first byte on.
    func receive(
        _ append: AppendRequest, _ request: Request, into upload: UnfinishedUpload, _ turn: UploadTurn, isWhole: Bool,
        _ logger: Logger
    ) async throws -> Outcome {
        do {
            try await take(append, request, into: upload, turn)
        } catch let excess as Excess {
            throw try await problem(of: excess, upload)
        } catch let problem as FormProblem {
            // Nobody need send the rest.
            try await uploads.remove(upload)
            throw UploadProblem(problem)
        }
        if append.isComplete {
            return try await finish(upload, turn, append.version, isWhole: isWhole, logger)
        }
        guard case .unfinished(let offset) = try await upload.promisedProgress() else {
            throw UploadProblem.unfinishedUploadNotFound
        }
        // Before the seventh version an append was answered as the creation (revision 05, §4.4).
        var response = Response(status: isWhole || append.version < .interop7 ? .created : .noContent)
        response.headers.uploadOffset = offset
        response.headers.setUploadCompleteness(false, in: append.version)
        if isWhole { response.headers[.location] = location(of: upload) }
        response.headers.setUploadLimits(limits(of: upload), in: append.version)
        return .answer(response)
    }

    /// Takes the bytes as far as they come.
    private func take(
        _ append: AppendRequest, _ request: Request, into upload: UnfinishedUpload, _ turn: UploadTurn
    ) async throws {
        let (meter, options, peer) = (reception.meter, reception.options, UploadConnection.current?.peer)
        var body = request.body.makeAsyncIterator()
        var next: ByteBuffer?
        do {
            try meter.checkRoom(for: peer, options)
            guard !turn.isEnded else { throw UploadProblem.supersededAppend }
            next = try await request.beginning(of: &body)
        } catch {
            guard !turn.isEnded else { throw UploadProblem.supersededAppend }
            throw Self.problem(of: error, at: 0)
        }
        try meter.begins(for: peer, options)
        let start = ContinuousClock.now
        // The bytes count once, when the form is read.
        defer { meter.ended(for: peer, bodyBytes: 0, after: start.duration(to: .now)) }
        guard !turn.isEnded else { throw UploadProblem.supersededAppend }
        var writing = try await UploadAppend(to: upload, of: uploads)
        let check = upload.takeCheck(at: append.offset)
        let interruption: (any Error)?
        do {
            while let chunk = next {
                try judge(writing, chunk.readableBytes, of: upload)
                try check?.read(chunk)
                try await writing.take(chunk)
                next = try await body.next(isolation: #isolation)
            }
            interruption = nil
        } catch let error as UploadStoreError {
            throw error
        } catch {
            interruption = error
        }
        upload.giveBack(check)
        // Whatever ended it, what has come need not come again.
        try await writing.finish()
        guard !turn.isEnded else { throw UploadProblem.supersededAppend }
        let count = writing.offset - append.offset
        if let interruption { throw Self.problem(of: interruption, at: count) }
        // A connection that is gone may look like the end of the body.
        try Task.checkCancellation()
        if let announced = append.contentLength, count != announced { throw UploadProblem.endedEarly(at: count) }
    }

    // Untyped: the compiler of Swift 6.3 ends in an assertion when it optimizes a typed one of this nested type.
    private func judge(_ writing: UploadAppend, _ count: Int, of upload: UnfinishedUpload) throws {
        let end = writing.offset + Int64(count)
        if let length = upload.facts.length, end > length { throw Excess.ofLength }
        guard end <= reception.options.limits.maximumBodyBytes else { throw Excess.ofMaximum }
        guard !uploads.isFull(for: end - upload.bytes, options) else { throw Excess.ofAll }
    }

    private static func problem(of error: any Error, at count: Int64) -> any Error {
        (error as? RequestInterruption)?.problem(at: count) ?? error
    }

    /// An upload that came to have more than it may is of no use any more (§4.4.2).
    private func problem(of excess: Excess, _ upload: UnfinishedUpload) async throws -> UploadProblem {
        switch excess {
        case .ofAll:
            return .tooManyUnfinished(
                options, share: PeerAddress.share(reception.options.clientShare, of: options.maximumUnfinished))
        case .ofLength:
            try await uploads.remove(upload)
            return .inconsistentLength
        case .ofMaximum:
            try await uploads.remove(upload)
            return .uploadTooLarge(maximum: reception.options.limits.maximumBodyBytes)
        }
    }

    /// Makes the upload a record as any form becomes one.
    ///
    /// It is made under a key, so that it is made once, whatever ends the receiver before the answer is kept.
    private func finish(
        _ upload: UnfinishedUpload, _ turn: UploadTurn, _ version: ResumptionVersion, isWhole: Bool, _ logger: Logger
    ) async throws -> Outcome {
        guard turn.beginFinishing() else { throw UploadProblem.supersededAppend }
        let facts = upload.facts
        let length = upload.bytes
        guard facts.length ?? length == length else { throw UploadProblem.inconsistentLength }
        let head = HTTPRequest(
            method: .post, scheme: nil, authority: nil, path: reception.options.path,
            headerFields: [.contentType: facts.contentType, .contentLength: String(length)])
        let form = Request(head: head, body: RequestBody(asyncSequence: StoredBody(path: upload.folder.body)))
        let key = IdempotencyKey(digest: facts.keyDigest)
        do {
            // The parts of a form are shown with the request that brought all of it.
            let capture = isWhole ? RequestCapture.current : nil
            let response = try await RequestCapture.$current.withValue(capture) {
                try await reception.answer(form, under: key, logger: logger)
            }
            await keep(KeptAnswer(response, length: length), of: upload, logger)
            return .answer(describe(response, length, version))
        } catch let problem as UploadProblem {
            // What may go well the next time, with the same bytes, is not the upload's last answer.
            guard problem.status.kind == .clientError else { return .refusedForm(problem) }
            await keep(KeptAnswer(problem, length: length), of: upload, logger)
            return .refusedForm(
                problem.adding { fields in
                    fields.setUploadCompleteness(true, in: version)
                    fields.uploadOffset = length
                })
        }
    }

    private func keep(_ answer: KeptAnswer, of upload: UnfinishedUpload, _ logger: Logger) async {
        do {
            try await uploads.finish(upload, with: answer, options: options)
        } catch {
            // Asked for again, the answer is made again, and under its key the record stays the same.
            logger.error("Could not keep an upload's answer", metadata: ["error": "\(error)"])
        }
    }

    func describe(_ response: Response, _ length: Int64, _ version: ResumptionVersion) -> Response {
        var response = response
        response.headers.setUploadCompleteness(true, in: version)
        response.headers.uploadOffset = length
        return response
    }
}
