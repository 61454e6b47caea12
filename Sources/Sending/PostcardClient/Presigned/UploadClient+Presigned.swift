package import HTTPTypes
public import PostcardForm
package import PostcardFoundation
import Synchronization

extension UploadClient {
    /// Sends a file straight to a bucket of an object store, with a form that a server has signed.
    ///
    /// ```swift
    /// var form = MultipartForm()
    /// form.append(fileAt: photo, named: "file")
    /// let object = try await client.upload(form, with: presigned) { try await api.newPresignedForm() }
    /// try await api.notify(key: object.key, etag: object.etag)
    /// ```
    ///
    /// The signed fields are sent first and the file last, as object stores need it. Fields for which the policy allows
    /// only one value are added, and so is an allowed `Content-Type`. Before anything is sent, the form is compared
    /// with the policy: its expiration, the size of the file, the value of each field, and fields that no condition
    /// names. Photos that are fitted to the server's limit are made to fit the policy's limit.
    ///
    /// The client's retries, timeouts, networks and rules apply. Its interceptors, resumption, verification and digests
    /// do not, because the store must not get credentials or data that identify a user to your server. For the same
    /// reason, only harmless header fields of the transport are sent, such as `User-Agent`.
    ///
    /// - Parameters:
    ///   - form: A form with one file, whose name is ignored, and text fields that the policy allows, such as
    ///     `x-amz-meta-pet`. A stream must have a known length.
    ///   - presigned: The form that the server signed.
    ///   - refresh: Gets a new form from the server, within the total timeout. It is called at most once: if the form
    ///     has expired by this device's clock, or if the store refuses it as expired. The new form is sent even if it
    ///     seems to have expired, because then this device's clock is wrong. Defaults to `nil`: an expired form is an
    ///     error.
    ///   - progress: Called with the progress, as by ``upload(_:to:method:headerFields:progress:)``.
    /// - Returns: The object, with its key and ETag if they are known.
    /// - Throws: ``UploadError``, with the code ``UploadError/Code/formExpired`` or ``UploadError/Code/brokenPolicy``
    ///   if nothing was sent because the store would refuse the form; a refusal has an
    ///   ``UploadError/objectStoreProblem``. Errors of `refresh` unchanged.
    @discardableResult
    public func upload(
        _ form: MultipartForm, with presigned: PresignedForm,
        refreshing refresh: (@Sendable () async throws -> PresignedForm)? = nil,
        progress: ((UploadProgress) -> Void)? = nil
    ) async throws -> UploadedObject {
        let start = time.clock.instant
        guard let refresh else {
            return try await upload(
                form, with: presigned, checkingExpirationAt: Date(), since: start, progress: progress)
        }
        var refusal: UploadError?
        if !presigned.hasExpired(at: Date()) {
            do {
                return try await upload(
                    form, with: presigned, checkingExpirationAt: nil, since: start, progress: progress)
            } catch let error as UploadError where error.isExpiration(ofFormUntil: presigned.expires, at: Date()) {
                guard form.isReplayable else { throw error.addingUnreplayable() }
                refusal = error
            }
        }
        let fresh = try await withinTotalTimeout(since: start, of: presigned.url, after: refusal, refresh)
        return try await upload(
            form, with: fresh, checkingExpirationAt: nil, since: start, after: refusal, progress: progress)
    }

    private func upload(
        _ form: MultipartForm, with presigned: PresignedForm, checkingExpirationAt now: Date?,
        since start: ContinuousClock.Instant, after refusal: UploadError? = nil,
        progress: ((UploadProgress) -> Void)?
    ) async throws -> UploadedObject {
        // The sent file may differ from the caller's, such as a photo that was made to fit.
        let filename = Mutex<String?>(nil)
        let response = try await forObjectStores.perform(progress: progress) {
            var job = UploadJob(
                .form(form), url: presigned.url, method: presigned.method, headerFields: presigned.requestFields)
            job.presigned = (presigned, now)
            job.isForObjectStore = true
            job.acceptedStatuses = PresignedForm.acceptedStatuses
            // An attempt before the refusal may have stored the file.
            if refusal?.delivery == .responseLost { job.delivery = .responseLost(resource: nil) }
            job.elapsed = time.clock.instant - start
            job.noteLayout = { layout in filename.withLock { $0 = layout.parts.last?.filename } }
            return job
        }
        return UploadedObject(response, key: presigned.key(of: form, filename: filename.withLock(\.self)))
    }

    /// Sends a stored body that was made from a presigned form, perhaps by an earlier process.
    ///
    /// - Parameters:
    ///   - layout: The layout of the body.
    ///   - url: The address that was signed.
    ///   - method: The method that was signed.
    ///   - headerFields: The header fields that were signed.
    ///   - delivery: Whether the store may have the body from earlier attempts.
    ///   - elapsed: The time since the first attempt began.
    ///   - progress: Called with the progress.
    package func upload(
        toObjectStore layout: FormLayout, _ url: URL, method: HTTPRequest.Method, headerFields: HTTPFields,
        after delivery: PossibleDelivery, elapsed: Duration, progress: @escaping (UploadProgress) -> Void
    ) async throws -> UploadResponse {
        try await forObjectStores.perform(progress: progress) {
            var job = UploadJob(.layout(layout), url: url, method: method, headerFields: headerFields)
            job.isForObjectStore = true
            job.acceptedStatuses = PresignedForm.acceptedStatuses
            job.delivery = delivery
            job.elapsed = elapsed
            return job
        }
    }

    /// A copy of the client without the settings for the app's own server.
    private var forObjectStores: UploadClient {
        var client = self
        client.interceptors = []
        client.resumption = nil
        client.responses.verification = nil
        client.responses.sendsDigests = false
        return client
    }
}

extension MultipartForm {
    /// Whether the form can be sent again. It is `false` if the form has a stream that can be read only once.
    fileprivate var isReplayable: Bool {
        parts.allSatisfy { if case .stream(let stream) = $0.content { stream.isReplayable } else { true } }
    }
}

/// A file that an object store has accepted.
public struct UploadedObject: Sendable {
    /// The key of the object, from the store's response or else from the form; `nil` if neither has it.
    public let key: String?

    /// The identifier of the object's content, without its quotes; `nil` if the store does not return an identifier.
    /// With the identifier, a server can check whether the object still has the uploaded content.
    public let etag: String?

    /// The store's response.
    public let response: UploadResponse

    /// Reads the key and the ETag from a response. A 201 has them in its XML, a 303 in the query of its `Location`, and
    /// a 200 or 204 in header fields.
    ///
    /// - Parameter key: The key of the object in the form, if it is known.
    init(_ response: UploadResponse, key: String?) {
        self.response = response
        let elements = XMLElements(response.body)
        let location = response.headerFields[.location].flatMap { URL(string: $0) }
        let query = location.flatMap { URLComponents(url: $0, resolvingAgainstBaseURL: true)?.queryItems } ?? []
        func found(_ element: String, _ parameter: String) -> String? {
            elements[element] ?? query.first { $0.name.streamSafe == parameter }?.value?.streamSafe
        }
        self.key = found("Key", "key") ?? key
        etag = (found("ETag", "etag") ?? response.headerFields[.eTag]).map { etag in
            etag.count > 1 && etag.hasPrefix("\"") && etag.hasSuffix("\"") ? String(etag.dropFirst().dropLast()) : etag
        }
    }
}
