import HTTPTypes
public import PostcardClient
import PostcardForm
public import PostcardFoundation
import PostcardWire

extension UploadQueue {
    /// Checks a form, writes its body, and adds it to the queue.
    func enqueue(
        _ form: MultipartForm, _ request: QueuedRequest, conditions: UploadConditions, tag: (any Encodable & Sendable)?
    ) async throws -> QueuedUpload.ID {
        let limits = try limits(of: request)
        let tag = try tag.map { try JSONEncoder().encode($0) }
        if let tag, tag.count > Self.maximumTagBytes {
            throw UploadQueueError.tagTooLarge(tag.count, limit: Self.maximumTagBytes)
        }
        if form.hasPickedItems {
            return try await enqueueImporting(form, request, conditions: conditions, tag: tag)
        }
        return try await opening.activity.perform { [self] in
            try await form.withPreparedParts(within: limits) { form in
                try await add(form, request, conditions: conditions, tag: tag)
            }
        }
    }

    private static let maximumTagBytes = 4 << 10

    /// The known size limits of the server.
    func limits(of request: QueuedRequest) throws -> FormSizeLimits {
        let limits = FormSizeLimits(rules)
        return try request.presigned.map { limits.lowered(by: try $0.limits) } ?? limits
    }

    private func add(
        _ form: MultipartForm, _ request: QueuedRequest, conditions: UploadConditions, tag: Data?
    ) async throws -> QueuedUpload.ID {
        let store = try await opening.store()
        let written = try await write(form, request, as: UUID(), in: store)
        let upload = NewUpload(form: written, conditions: conditions, tag: tag)
        do {
            let id = try store.database.write { try $0.insert(upload, at: time.date()) }
            store.log.note("Upload \(id) to \(request.url.origin) is in the queue.", at: time.date())
            store.notifyChange()
            sender?.handOverSoon()
            reporter?.start()
            return id
        } catch {
            store.directory.removeBody(written.uuid)
            throw error
        }
    }

    /// Checks a form and writes its body.
    func write(
        _ form: MultipartForm, _ request: QueuedRequest, as uuid: UUID, in store: QueueStore
    ) async throws -> NewForm {
        var layout = try form.layout()
        if let problem = try rules?.problems(in: layout).first { throw UploadError.brokenRule(problem) }
        if let presigned = request.presigned {
            layout = try presigned.layout(of: form, layout, at: time.date())
            if session != nil { try Self.checkRedirect(of: layout, to: request.url) }
        }
        let texts = PresignedForm.textNames(of: form)
        return try await NewForm(
            writing: layout, request, request.presigned.map { SignedAddress($0, texts: texts) }, as: uuid,
            in: store.directory)
    }
}

extension UploadQueue {
    /// Checks that the store does not respond to a presigned form with a redirect. In a background session the system
    /// follows redirects, and then it is unknown whether the file arrived.
    private static func checkRedirect(of layout: FormLayout, to url: URL) throws {
        let names = ["success_action_redirect", "redirect"]
        guard let part = layout.parts.dropLast().first(where: { names.contains($0.name.lowercased()) }) else { return }
        throw UploadError(
            stored: .brokenPolicy,
            "The field \(part.name.debugDescription) has \(url.origin) redirect the upload, which the system follows in "
                + "a background session, so that nothing would say whether the file arrived. Have the server sign "
                + "success_action_status instead.", response: nil, delivery: .neverArrived)
    }
}

extension UploadQueue {
    /// Adds the form of an endpoint to the queue. When this method returns, the form is on disk and will be sent.
    ///
    /// ```swift
    /// try await queue.enqueue(AddPet(name: "초코", photos: photos), tag: PetID(7))
    /// ```
    ///
    /// The endpoint's accepted statuses are stored with the form. The response is in ``QueuedUpload/State/done(_:)``:
    /// decode it with ``QueuedUpload/Response/decode(_:decoder:)``, or with an endpoint of the same type.
    ///
    /// - Parameters:
    ///   - endpoint: The endpoint. Its `acceptsEarly` is not used.
    ///   - conditions: The conditions and the order in which the upload may be sent. Defaults to as soon as possible.
    ///   - tag: A small value of the app, as for ``enqueue(_:to:method:headerFields:conditions:tag:)``.
    /// - Returns: The upload's identifier.
    /// - Throws: The errors of ``enqueue(_:to:method:headerFields:conditions:tag:)``, and those of the endpoint.
    @discardableResult @concurrent
    public func enqueue<Endpoint: UploadEndpoint>(
        _ endpoint: Endpoint, conditions: UploadConditions = UploadConditions(),
        tag: (any Encodable & Sendable)? = nil
    ) async throws -> QueuedUpload.ID {
        var request = QueuedRequest(
            url: try endpoint.url(), method: endpoint.method, headerFields: endpoint.headerFields)
        request.acceptedStatuses = endpoint.acceptedStatuses
        return try await enqueue(try endpoint.form(), request, conditions: conditions, tag: tag)
    }
}

extension UploadEndpoint {
    /// Decodes the response to a form of this endpoint that a queue has sent.
    ///
    /// - Throws: The errors of ``PostcardClient/UploadEndpoint/decode(_:)``. The queue stores only the first 64 KiB of
    ///   a longer response, which are not valid JSON.
    public func decode(_ response: QueuedUpload.Response) throws -> Response {
        try decode(UploadResponse(response))
    }
}

extension QueuedUpload.Response {
    /// Decodes the body as JSON.
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - decoder: The decoder, with the formats of dates and keys.
    /// - Throws: `UploadError` with the code `decoding`, also for a response of more than 64 KiB, which is stored
    ///   incompletely.
    public func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, decoder: JSONDecoder = JSONDecoder()
    ) throws(UploadError) -> Value {
        try UploadResponse(self).decode(type, decoder: decoder)
    }
}
