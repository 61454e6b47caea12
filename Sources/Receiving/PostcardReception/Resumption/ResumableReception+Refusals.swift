import HTTPTypes
import Logging
import PostcardForm
import PostcardWire
import PostcardStore

// MARK: - The draft's requirements for refusals

extension ResumableReception {
    func responding(
        _ version: ResumptionVersion, _ logger: Logger, _ body: () async throws -> RequestOutcome
    ) async throws -> FormResponse {
        switch try await naming(version, logger, body) {
        case .response(var response):
            response.headers.setResumptionVersion(version)
            return response
        case .refusedForm(let problem, let isFinal):
            throw named(problem, version, isFinal: isFinal)
        }
    }

    /// Adds the limits of the upload to a refusal with status 413 (§4.1.4).
    func limiting(
        _ upload: Uploads.Unfinished, _ version: ResumptionVersion, _ body: () async throws -> RequestOutcome
    ) async throws -> RequestOutcome {
        func limited(_ problem: UploadProblem) -> UploadProblem {
            guard problem.status == .contentTooLarge else { return problem }
            return problem.adding { $0.setUploadLimits(limits(of: upload), in: version) }
        }
        do {
            let outcome = try await body()
            guard case .refusedForm(let problem, let isFinal) = outcome else { return outcome }
            return .refusedForm(limited(problem), isFinal: isFinal)
        } catch let problem as UploadProblem {
            throw limited(problem)
        }
    }

    /// Counts each refusal that the closure throws, and adds the draft's header fields and limits to it (§4.4.2).
    /// `isOfForm` says whether the refusals are about the form, and not the request. Such a refusal may end the upload.
    func naming<Value>(
        _ version: ResumptionVersion, isOfForm: Bool = false, _ logger: Logger, _ body: () async throws -> Value
    ) async throws -> Value {
        do {
            return try await counting(logger, body)
        } catch let problem as UploadProblem {
            throw named(problem, version, isFinal: isOfForm && problem.isFinalForForm)
        }
    }

    /// Adds header fields to a refusal: the draft's version, whether the upload has ended, and, to a 413, the limits.
    func named(_ problem: UploadProblem, _ version: ResumptionVersion, isFinal: Bool) -> UploadProblem {
        reception.named(problem).adding { fields in
            fields.setResumptionVersion(version)
            fields.setUploadCompleteness(isFinal, in: version)
            if problem.status == .contentTooLarge, !fields.contains(.uploadLimit) {
                fields.setUploadLimits(limits, in: version)
            }
        }
    }

    /// Counts each refusal that the closure throws. Errors of the store become refusals.
    func counting<Value>(_ logger: Logger, _ body: () async throws -> Value) async throws -> Value {
        do {
            do {
                return try await body()
            } catch let error as UploadStoreError {
                throw reception.problem(of: error, logger: logger)
            }
        } catch let problem as UploadProblem {
            reception.countRefusal(problem)
            throw problem
        }
    }
}

extension UploadProblem {
    /// Whether the refusal of a form ends its upload, because the same form would be refused again. A form that is too
    /// large does not end its upload, because the client can send a smaller form.
    var isFinalForForm: Bool {
        status.kind == .clientError && ![.requestTimeout, .contentTooLarge, .tooManyRequests].contains(status)
    }
}
