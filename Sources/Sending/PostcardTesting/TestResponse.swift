public import HTTPTypes
package import PostcardClient
import PostcardFoundation

/// The response of a ``TestServer`` to a request.
///
/// ```swift
/// let server = TestServer(.status(503), .responseLost, .created(["id": "7"]))
/// ```
public struct TestResponse: Sendable {
    package enum Kind: Sendable {
        case response(UploadResponse)
        case unencodable(String)
        case connectionFails
        case untrusted
        case neverResponds
        /// The connection breaks after this many bytes of the form; `nil` means after the whole form.
        case breaks(after: Int64?)
    }

    package let kind: Kind
    var bytesPerSecond: Int?

    private init(_ kind: Kind) {
        self.kind = kind
    }

    /// A 201 (Created) with JSON, such as that of the stored object.
    ///
    /// - Parameter value: The value to encode with a default `JSONEncoder`.
    public static func created(_ value: some Encodable) -> TestResponse {
        do {
            return .status(201, json: String(decoding: try JSONEncoder().encode(value), as: UTF8.self))
        } catch {
            return TestResponse(.unencodable("\(error)"))
        }
    }

    /// A 201 (Created) without a body.
    public static let created = status(201)

    /// A response with a status, without a body by default.
    ///
    /// - Parameters:
    ///   - status: The status, such as 503.
    ///   - json: The body, as JSON. Defaults to none.
    ///   - headerFields: Further header fields, such as `Retry-After`. A `Content-Type` replaces `application/json`.
    public static func status(
        _ status: HTTPResponse.Status, json: String = "", headerFields: HTTPFields = [:]
    ) -> TestResponse {
        var fields = headerFields
        if !json.isEmpty, fields[.contentType] == nil { fields[.contentType] = "application/json" }
        return TestResponse(.response(UploadResponse(status: status, headerFields: fields, body: Data(json.utf8))))
    }

    /// A refusal with a problem (RFC 9457), as `postcard serve` sends it.
    ///
    /// ```swift
    /// TestServer(.problem(413, code: "body-too-large", limit: 20_000), .created)
    /// ```
    ///
    /// - Parameters:
    ///   - status: The status, such as 413.
    ///   - code: The kind of problem, such as `body-too-large`.
    ///   - limit: The maximum size in bytes: of each file for the code `file-too-large`, of all files together for
    ///     `files-too-large`, and of the whole body for any other code. Photos that follow the server's limit are then
    ///     fitted to this size and sent again. Defaults to `nil`, no limit.
    public static func problem(_ status: HTTPResponse.Status, code: String, limit: Int64? = nil) -> TestResponse {
        let problem = Problem(
            status: status.code, code: code,
            limit: limit.map { bytes in
                let name =
                    switch code {
                    case "file-too-large": "maximumFileBytes"
                    case "files-too-large": "maximumBytesOfAllFiles"
                    default: "maximumBodyBytes"
                    }
                return Problem.Limit(name: name, value: bytes)
            })
        let json = (try? JSONEncoder().encode(problem)).map { String(decoding: $0, as: UTF8.self) } ?? ""
        return .status(status, json: json, headerFields: [.contentType: "application/problem+json"])
    }

    private struct Problem: Encodable {
        struct Limit: Encodable {
            let name: String
            let value: Int64
        }

        let status: Int
        let code: String
        let limit: Limit?
    }

    /// No connection can be made, so nothing is sent.
    public static let connectionFails = TestResponse(.connectionFails)

    /// The server's certificate is not trusted, so nothing is sent.
    public static let untrusted = TestResponse(.untrusted)

    /// The server has the whole form, and its response is lost. The server can recognize another attempt only by the
    /// `Idempotency-Key`.
    public static let responseLost = TestResponse(.breaks(after: nil))

    /// The server has the whole form and does not respond, so the attempt times out. Without a ``TestClock`` it times
    /// out at once; otherwise when the test has advanced the clock far enough.
    public static let neverResponds = TestResponse(.neverResponds)

    /// The connection breaks while the form is sent.
    ///
    /// - Parameter bytes: The number of bytes of the form that the server receives before the connection breaks.
    public static func breaks(after bytes: Int64) -> TestResponse { TestResponse(.breaks(after: max(bytes, 0))) }

    /// The same response to a form that is received slowly, in steps of a tenth of a second on the server's clock.
    /// Without a ``TestClock`` the time passes by itself.
    ///
    /// - Parameter bytesPerSecond: The number of bytes of the form that arrive in a second; at least 1.
    public func slowly(bytesPerSecond: Int) -> TestResponse {
        var response = self
        response.bytesPerSecond = max(bytesPerSecond, 1)
        return response
    }
}

extension TestResponse: CustomStringConvertible {
    public var description: String {
        switch kind {
        case .response(let response): "\(response.status.code)"
        case .unencodable: "created"
        case .connectionFails: "connectionFails"
        case .untrusted: "untrusted"
        case .neverResponds: "neverResponds"
        case .breaks(nil): "responseLost"
        case .breaks(let bytes?): "breaks(after: \(bytes))"
        }
    }
}
