public import PostcardClient
public import PostcardFoundation

extension UploadQueue {
    /// Adds the form of an endpoint to the queue. When this returns, the form is on disk and will be sent.
    ///
    /// ```swift
    /// try await queue.enqueue(AddPet(name: "초코", photos: photos), tag: PetID(7))
    /// ```
    ///
    /// The endpoint's accepted statuses are stored with the form. Its response is in ``QueuedUpload/State/done(_:)``:
    /// decode it with ``QueuedUpload/Response/decode(_:decoder:)``, or with an endpoint of the same type and its decoder.
    ///
    /// - Parameters:
    ///   - endpoint: The endpoint. Its `acceptsEarly` is not used.
    ///   - conditions: When the upload may be sent. Defaults to as soon as possible.
    ///   - tag: A small value of the app's, as for ``enqueue(_:to:method:headerFields:conditions:tag:)``.
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
    /// - Throws: The errors of ``PostcardClient/UploadEndpoint/decode(_:)``. Of a longer response, the queue has the
    ///   first 64 KiB, which are not JSON.
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
    /// - Throws: `UploadError` with the code `decoding`, also for a response of more than 64 KiB.
    public func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, decoder: JSONDecoder = JSONDecoder()
    ) throws(UploadError) -> Value {
        try UploadResponse(self).decode(type, decoder: decoder)
    }
}
