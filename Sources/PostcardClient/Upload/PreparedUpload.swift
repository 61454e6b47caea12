import HTTPTypes
import PostcardForm
import PostcardResumption

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Sends a form whose parts are prepared first, such as photos that must fit.
///
/// A form that follows the server's limit is prepared for the limits known beforehand. If the server refuses it and
/// reports a smaller limit, it is prepared for that and sent again, under the same `Idempotency-Key`. If it cannot be
/// prepared for that, the refusal is the error, with that of the preparation as its underlying one.
struct PreparedUpload: Sendable {
    private let client: UploadClient
    private let form: MultipartForm
    private let job: UploadJob
    private let key: IdempotencyKey?
    private let id = UUID().uuidString
    private let start: ContinuousClock.Instant
    private let events: UploadEventQueue?

    init(
        _ client: UploadClient, _ form: MultipartForm, _ job: UploadJob, under key: IdempotencyKey?,
        since start: ContinuousClock.Instant, reportingTo events: UploadEventQueue?
    ) {
        self.client = client
        self.form = form
        self.job = job
        self.key = key ?? (form.followsServerLimit ? IdempotencyKey() : nil)
        self.start = start
        self.events = events
    }

    /// The result of sending a prepared form.
    private enum Outcome {
        case accepted(UploadResponse)
        /// The server has refused it, and reported limits that it exceeds.
        case tooLarge(UploadError, FormSizeLimits)
    }

    func response() async throws -> UploadResponse {
        let known = FormSizeLimits(client.rules)
        switch try await send(within: known, after: nil) {
        case .accepted(let response):
            return response
        case .tooLarge(let refusal, let reported):
            events?.put(.preparing)
            switch try await send(within: known.lowered(by: reported), after: refusal) {
            case .accepted(let response): return response
            case .tooLarge(let refusal, _): throw refusal
            }
        }
    }

    /// - Parameter refusal: The error of the attempts made before.
    private func send(within limits: FormSizeLimits, after refusal: UploadError?) async throws -> Outcome {
        let folder: PreparationFolder
        var job = job
        do {
            folder = try PreparationFolder()
        } catch {
            throw Self.failure(error, after: refusal)
        }
        defer { folder.remove() }
        do {
            job.content = .form(
                try await client.withinTotalTimeout(of: job.url, since: start, after: refusal) {
                    try await form.prepared(within: limits, in: folder.url)
                })
        } catch {
            throw Self.failure(error, after: refusal)
        }
        let run = try UploadRun(
            client, job, under: key, as: id, earlierAttempts: refusal?.attempts ?? 0, since: start,
            reportingTo: events)
        do {
            return .accepted(try await run.response())
        } catch let error as UploadError {
            guard form.followsServerLimit, error.code == .refused, error.delivery == .refused,
                let layout = run.layout, layout.isReplayable, let exceeded = error.limits(exceededBy: layout)
            else { throw error }
            run.log.preparingAgain(within: exceeded)
            return .tooLarge(error, exceeded)
        }
    }

    /// The error of an upload whose preparation failed.
    private static func failure(_ error: any Error, after refusal: UploadError?) -> any Error {
        if error is CancellationError || error is UploadError { return error }
        if let refusal { return refusal.adding(preparationError: error) }
        return (error as? FormError).map(UploadError.form) ?? error
    }
}

extension UploadError {
    /// The same refusal, with the reason why the form cannot be prepared for the limit that it reports.
    fileprivate func adding(preparationError error: any Error) -> UploadError {
        var refusal = adding("The form cannot be prepared for that limit: \(error)")
        refusal.underlyingError = error
        return refusal
    }

    /// The limits that a refusal reports and that the form exceeds. A limit that the form keeps is not the reason.
    ///
    /// They are the `limit` of a problem with status 413, as Postcard's server writes it, and the `max-size` of
    /// `Upload-Limit` (draft-ietf-httpbis-resumable-upload) with any status.
    fileprivate func limits(exceededBy layout: FormLayout) -> FormSizeLimits? {
        guard let response else { return nil }
        var reported = FormSizeLimits(
            maximumBodyBytes: response.headerFields.uploadLimits(in: .newest)?.maximumBytes)
        if response.status == .contentTooLarge, let limit = problem?["limit"],
            let value = limit["value"]?.number.flatMap({ Int64(exactly: $0.rounded(.down)) })
        {
            switch limit["name"]?.text {
            case "maximumBodyBytes":
                reported = reported.lowered(by: FormSizeLimits(maximumBodyBytes: value))
            case "maximumFileBytes": reported.maximumFileBytes = value
            case "maximumBytesOfAllFiles": reported.maximumBytesOfAllFiles = value
            // A rule on the files of one field.
            case let name? where name.hasPrefix("files.") && name.hasSuffix(".maximumBytes"):
                reported.maximumBytesByName = [String(name.dropFirst(6).dropLast(13)): value]
            default: break
            }
        }
        return reported.exceeded(by: layout)
    }
}
