import HTTPTypes
import Logging
import PostcardForm
import PostcardWire
import PostcardStore

// MARK: - What the draft asks of refusals

extension ResumableReception {
    func responding(
        _ version: ResumptionVersion, _ logger: Logger, _ body: () async throws -> Outcome
    ) async throws -> FormResponse {
        switch try await naming(version, logger, body) {
        case .response(var response):
            response.headers.setResumptionVersion(version)
            return response
        case .refusedForm(let problem, let isFinal):
            throw named(problem, version, isFinal: isFinal)
        }
    }

    /// Adds an upload's limits to refusals that are about them (§4.1.4).
    func limiting(
        _ upload: Uploads.Unfinished, _ version: ResumptionVersion, _ body: () async throws -> Outcome
    ) async throws -> Outcome {
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

    /// Adds to refusals what the draft asks for.
    ///
    /// - Parameter isOfForm: Whether the refusals are of the form, and not of the request (§4.4.2). Defaults to `false`.
    func naming<Value>(
        _ version: ResumptionVersion, isOfForm: Bool = false, _ logger: Logger, _ body: () async throws -> Value
    ) async throws -> Value {
        do {
            return try await counting(logger, body)
        } catch let problem as UploadProblem {
            throw named(problem, version, isFinal: isOfForm && problem.isFinalForForm)
        }
    }

    /// Adds the version and the completeness to a refusal, and the limits to one that is about them.
    func named(_ problem: UploadProblem, _ version: ResumptionVersion, isFinal: Bool) -> UploadProblem {
        reception.named(problem).adding { fields in
            fields.setResumptionVersion(version)
            fields.setUploadCompleteness(isFinal, in: version)
            if problem.status == .contentTooLarge, !fields.contains(.uploadLimit) {
                fields.setUploadLimits(limits, in: version)
            }
        }
    }

    /// Counts a refusal.
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
    /// Whether the refusal of a form ends its upload: the same form would be refused again. One that is too large can be
    /// made smaller, within the limits.
    var isFinalForForm: Bool {
        status.kind == .clientError && ![.requestTimeout, .contentTooLarge, .tooManyRequests].contains(status)
    }
}
