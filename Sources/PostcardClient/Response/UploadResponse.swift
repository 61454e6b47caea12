public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// What a server answered.
public struct UploadResponse: Sendable {
    /// The status, such as 201.
    public let status: HTTPResponse.Status

    /// The header fields.
    public let headerFields: HTTPFields

    /// The body, whole.
    public let body: Data

    /// The number of attempts that it took, from 1.
    public internal(set) var attempts = 1

    /// The number of the form's bytes that had been handed to the connection when the response was complete.
    public package(set) var bytesSent: Int64 = 0

    /// Whether it came before the whole form was handed to the connection; the server cannot have all of it.
    public internal(set) var isEarly = false

    /// Makes a response, as a transport does.
    public init(status: HTTPResponse.Status, headerFields: HTTPFields, body: Data) {
        self.status = status
        self.headerFields = headerFields
        self.body = body
    }

    /// The body as text, read as UTF-8; bytes that are none become U+FFFD.
    public var text: String {
        String(decoding: body, as: UTF8.self)
    }

    /// Reads the body as JSON.
    ///
    /// ```swift
    /// let record = try await client.upload(form, to: url).decode(Record.self)
    /// ```
    ///
    /// - Parameters:
    ///   - type: What to read it as.
    ///   - decoder: How dates, keys and the like are written.
    /// - Throws: ``UploadError`` with the code ``UploadError/Code/decoding``, whose message shows where the JSON
    ///   is not what was expected, and how what came begins.
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
