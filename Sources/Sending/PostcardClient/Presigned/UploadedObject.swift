import HTTPTypes
import PostcardForm
import PostcardFoundation

/// A file that an object store has accepted.
public struct UploadedObject: Sendable {
    /// The key of the object, as the store says it or else as the form has it; `nil` if neither does.
    public let key: String?

    /// What identifies the content, without the quotes around it; `nil` if the store does not say. A server compares it
    /// to find out whether an object is still the one that was uploaded.
    public let etag: String?

    /// The store's response.
    public let response: UploadResponse

    /// Reads a response: 201 has XML, 303 the query of its `Location`, 200 and 204 only header fields.
    ///
    /// - Parameter key: The key of the object as the form has it.
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
