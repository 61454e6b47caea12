import HTTPTypes
import Logging
import NIOCore
import PostcardForm
import PostcardWire
import PostcardStore

extension ResumableReception {
    /// The limit that an upload with too many bytes exceeds.
    private enum Excess: Error {
        case ofLength
        case ofMaximum
    }

    /// Appends the bytes of a request. If the upload is then complete, commits the form. `isWhole` says whether the
    /// request also created the upload.
    func receive(
        _ append: AppendRequest, _ request: IncomingRequest, on connection: (any RequestConnection)?,
        into upload: Uploads.Unfinished, _ holder: UploadLock.Holder, isWhole: Bool, _ logger: Logger
    ) async throws -> RequestOutcome {
        let reports = InterimReports(
            to: isWhole ? location(of: upload) : nil, limits(of: upload), append, on: connection, options)
        do {
            try await write(append, request, on: connection, into: upload, holder, reports)
        } catch let excess as Excess {
            throw try await problem(of: excess, upload)
        } catch let error as UploadStoreError where error.code == .overtaken {
            guard case .unfinished(let offset) = try await upload.durableProgress() else {
                throw UploadProblem.supersededAppend
            }
            throw UploadProblem.mismatchingOffset(expected: offset, provided: append.offset)
        } catch let problem as UploadProblem where problem.isDigestMismatch && isWhole {
            // The upload is discarded, because its client may not know its address.
            try await discard(upload)
            throw problem
        } catch let problem as FormProblem {
            // The upload is discarded, because the client need not send the remaining bytes.
            try await discard(upload)
            var problem = UploadProblem(problem)
            if isWhole, let observer = connection?.report.observer { problem = await observer.refusal(for: problem) }
            reception.meter.refused(problem)
            return .refusedForm(problem, isFinal: true)
        }
        if append.isComplete {
            return try await finish(upload, holder, append.version, on: connection, isWhole: isWhole, logger)
        }
        guard case .unfinished(let offset) = try await upload.durableProgress() else {
            throw UploadProblem.unfinishedUploadNotFound
        }
        // Before the seventh version, the response to an append was the same as to a creation (revision 05, §4.4).
        var response = FormResponse(status: isWhole || !append.version.has(.appendCompleteness) ? .created : .noContent)
        response.headers.uploadOffset = offset
        response.headers.setUploadCompleteness(false, in: append.version)
        if isWhole { response.headers[.location] = location(of: upload) }
        response.headers.setUploadLimits(limits(of: upload), in: append.version)
        return .response(response)
    }

    /// Appends the bytes of a request as they arrive.
    private func write(
        _ append: AppendRequest, _ request: IncomingRequest, on connection: (any RequestConnection)?,
        into upload: Uploads.Unfinished, _ holder: UploadLock.Holder, _ reports: InterimReports
    ) async throws {
        let meter = reception.meter
        var reports = reports
        let digestCheck = try DigestCheck(of: request, [.contentDigest])
        let cancelAnnouncement = try await reports.announce()
        defer { cancelAnnouncement?() }
        var body = request.chunks()
        var next: ByteBuffer?
        do {
            try reception.shares.check(of: .uploads, for: connection?.peer)
            guard !holder.isEnded else { throw UploadProblem.supersededAppend }
            next = try await request.beginning(of: &body, on: connection)
        } catch {
            guard !holder.isEnded else { throw UploadProblem.supersededAppend }
            throw Self.problem(of: error, at: 0)
        }
        let hold = try reception.shares.take(of: .uploads, on: connection)
        let start = ContinuousClock.now
        meter.begins()
        // The bytes are counted later, when the form is read.
        defer {
            withExtendedLifetime(hold) {}
            meter.ended(bodyBytes: nil, after: start.duration(to: .now))
        }
        guard !holder.isEnded else { throw UploadProblem.supersededAppend }
        var transfer = try await Transfer(of: append, to: upload, in: uploads, digestCheck)
        var interruption: (any Error)?
        do {
            while let chunk = next {
                try await checkLength(transfer.offset + Int64(chunk.readableBytes), of: upload)
                try await transfer.add(chunk, &reports)
                next = try await body.next(isolation: #isolation)
            }
        } catch let error as UploadStoreError {
            throw error
        } catch {
            interruption = error
        }
        try await transfer.end(after: interruption, holder)
    }

    /// The transfer of a request's bytes into an unfinished upload.
    private struct Transfer {
        let append: AppendRequest
        let upload: Uploads.Unfinished
        let uploads: UnfinishedUploads<Uploads>
        private var digestCheck: DigestCheck?
        private var appender: Uploads.Unfinished.Appender
        private var checker: ArrivingFormChecker?
        private var formProblem: FormProblem?

        init(
            of append: AppendRequest, to upload: Uploads.Unfinished, in uploads: UnfinishedUploads<Uploads>,
            _ digestCheck: DigestCheck?
        ) async throws {
            self.append = append
            self.upload = upload
            self.uploads = uploads
            self.digestCheck = digestCheck
            appender = try await upload.makeAppender(isRevertible: digestCheck != nil)
            // An earlier request may have stored bytes after the offset was compared.
            guard appender.offset == append.offset else { throw UploadStoreError.overtaken }
            checker = uploads.takeChecker(of: upload, at: append.offset)
        }

        var offset: Int64 { appender.offset }

        mutating func add(_ chunk: ByteBuffer, _ reports: inout InterimReports) async throws {
            digestCheck?.add(chunk)
            do {
                try checker?.check(chunk)
            } catch let problem as FormProblem where digestCheck != nil {
                // The bytes may be corrupted, so the digest decides after all bytes have arrived.
                formProblem = problem
                checker = nil
            }
            try await appender.append(chunk)
            if digestCheck == nil, reports.isDue(at: .now) {
                try await appender.finish()
                try await reports.report(upload.durableProgress())
            }
        }

        /// Makes the appended bytes durable, or removes them again if their digest is wrong. `interruption` is the
        /// error that ended the body early; `nil` if there was none.
        mutating func end(after interruption: (any Error)?, _ holder: UploadLock.Holder) async throws {
            let count = offset - append.offset
            let isEnded = holder.isEnded || Task.isCancelled
            let isWhole = interruption == nil && !isEnded && append.contentLength ?? count == count
            if isWhole, let field = digestCheck?.mismatch {
                try await appender.revert()
                throw UploadProblem.digestMismatch(field.rawName, of: count, at: append.offset).adding {
                    $0.uploadOffset = append.offset
                }
            }
            // Even if the request fails, the received bytes are kept, so that the client need not send them again.
            try await appender.finish()
            uploads.keep(checker, of: upload)
            guard !holder.isEnded else { throw UploadProblem.supersededAppend }
            if let interruption { throw ResumableReception.problem(of: interruption, at: count) }
            // A closed connection may look like the end of the body.
            try Task.checkCancellation()
            if let announced = append.contentLength, count != announced { throw UploadProblem.endedEarly(at: count) }
            if let formProblem { throw formProblem }
        }
    }

    // The errors are untyped, because the optimizer of Swift 6.3 crashes on a typed error of this nested type.
    private func checkLength(_ end: Int64, of upload: Uploads.Unfinished) async throws {
        if let length = upload.form.length, end > length { throw Excess.ofLength }
        guard end <= reception.options.limits.maximumBodyBytes else { throw Excess.ofMaximum }
        try await uploads.grow(upload, to: end)
    }

    static func problem(of error: any Error, at count: Int64) -> any Error {
        (error as? RequestInterruption)?.problem(at: count) ?? error
    }

    /// Discards an upload with too many bytes, and returns the refusal (§4.4.2).
    private func problem(of excess: Excess, _ upload: Uploads.Unfinished) async throws -> UploadProblem {
        switch excess {
        case .ofLength:
            try await discard(upload)
            return .inconsistentLength
        case .ofMaximum:
            try await discard(upload)
            return .uploadTooLarge(maximum: reception.options.limits.maximumBodyBytes)
        }
    }

    /// Receives a complete form as if it had arrived in a single request.
    ///
    /// The key prevents a second record, even if the server is killed before the response is stored.
    private func finish(
        _ upload: Uploads.Unfinished, _ holder: UploadLock.Holder, _ version: ResumptionVersion,
        on connection: (any RequestConnection)?, isWhole: Bool, _ logger: Logger
    ) async throws -> RequestOutcome {
        guard holder.beginFinishing() else { throw UploadProblem.supersededAppend }
        guard case .unfinished(let length) = upload.progress else { throw UploadProblem.unfinishedUploadNotFound }
        let known = upload.form
        guard known.length ?? length == length else { throw UploadProblem.inconsistentLength }
        var head = HTTPRequest(
            method: .post, scheme: nil, authority: nil, path: reception.options.path,
            headerFields: [.contentType: known.contentType, .contentLength: String(length)])
        head.headerFields[.contentDisposition] = known.fileParameters.map { "inline\($0)" }
        head.headerFields[.reprDigest] = known.reprDigest
        head.headerFields[.wantReprDigest] = known.wantReprDigest
        let form = IncomingRequest(head, StoredFileBody(file: try await upload.openContent()))
        do {
            // The inspector shows the parts of a form only if a single request contained the whole form.
            let observer = isWhole ? connection?.report.observer : nil
            let received = try await reception.receive(
                form, on: connection, observer: observer, under: known.key, logger: logger)
            let response = await reception.response(showing: received, on: connection, logger: logger)
            let final = FinalResponse(
                response, isOwn: received.ownResponse != nil, showing: received.upload.record.id, length: length)
            await store(final, of: upload, logger)
            return .response(describe(response, length, version))
        } catch let problem as UploadProblem {
            // All bytes have arrived, so a form that is too large cannot become smaller.
            guard problem.isFinalForForm || problem.status == .contentTooLarge else {
                return .refusedForm(problem, isFinal: false)
            }
            await store(FinalResponse(problem, length: length), of: upload, logger)
            return .refusedForm(problem.adding { $0.uploadOffset = length }, isFinal: true)
        }
    }

    private func store(_ response: FinalResponse, of upload: Uploads.Unfinished, _ logger: Logger) async {
        do {
            try await upload.finish(with: response, options: options)
            uploads.ended(upload)
        } catch {
            // If the client asks again, the form is read again, and its key leads to the same record.
            logger.error("Could not store an upload's response", metadata: ["error": "\(error)"])
        }
    }

    func describe(_ response: FormResponse, _ length: Int64, _ version: ResumptionVersion) -> FormResponse {
        var response = response
        response.headers.setUploadCompleteness(true, in: version)
        response.headers.uploadOffset = length
        return response
    }
}

/// A stored file as the body of a request.
private struct StoredFileBody: AsyncSequence, Sendable {
    let file: any StoredFile

    struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let file: any StoredFile
        fileprivate var offset: Int64 = 0

        mutating func next() async throws -> ByteBuffer? {
            let piece = try await file.read(at: offset, count: 256 << 10)
            offset += Int64(piece.readableBytes)
            return piece.readableBytes > 0 ? piece : nil
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(file: file) }
}
