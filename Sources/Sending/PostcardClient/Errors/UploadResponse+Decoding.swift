public import PostcardFoundation

extension UploadResponse {
    /// Decodes the body as JSON.
    ///
    /// ```swift
    /// let record = try await client.upload(form, to: url).decode(Record.self)
    /// ```
    ///
    /// JSON with a text of more than 30 combining marks in a row is refused, because types that are decoded from it compare
    /// such texts in quadratic time (UAX #15 §13).
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - decoder: The decoder, with the formats of dates and keys. Defaults to the client's, see
    ///     ``ResponseOptions/decoder``.
    /// - Throws: ``UploadError`` with the code ``UploadError/Code/decoding``, whose message shows where the JSON
    ///   differs from what was expected, and the beginning of the body.
    public func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, decoder: JSONDecoder? = nil
    ) throws(UploadError) -> Value {
        do {
            if let fault = JSON.faultForDecoders(in: body) {
                throw DecodingError.dataCorrupted(DecodingError.Context(codingPath: [], debugDescription: fault))
            }
            return try (decoder ?? self.decoder ?? JSONDecoder()).decode(type, from: body)
        } catch {
            throw .decoding(self, as: "\(type)", error)
        }
    }
}
