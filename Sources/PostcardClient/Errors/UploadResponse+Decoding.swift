public import PostcardFoundation

extension UploadResponse {
    /// Decodes the body as JSON.
    ///
    /// ```swift
    /// let record = try await client.upload(form, to: url).decode(Record.self)
    /// ```
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - decoder: The decoder, with the formats of dates and keys.
    /// - Throws: ``UploadError`` with the code ``UploadError/Code/decoding``, whose message shows where the JSON
    ///   differs from what was expected, and the beginning of the body.
    public func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, decoder: JSONDecoder = JSONDecoder()
    ) throws(UploadError) -> Value {
        do {
            return try decoder.decode(type, from: body)
        } catch {
            throw .decoding(self, as: "\(type)", error)
        }
    }
}
