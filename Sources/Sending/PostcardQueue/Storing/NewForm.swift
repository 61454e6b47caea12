import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardFoundation

/// A form whose body is on disk, and which is not in the database yet.
struct NewForm {
    let uuid: UUID
    let url: URL
    let method: HTTPRequest.Method
    let headerFields: HTTPFields
    let contentType: String
    let parts: [UploadRow.Part]
    let totalBytes: Int64
    let signed: SignedAddress?
    let acceptedStatuses: Set<Int>?

    /// Writes the body of a form.
    ///
    /// - Parameters:
    ///   - request: The form's request.
    ///   - signed: The signed address of an object store; `nil` for other servers.
    ///   - uuid: The name of the body's file. Defaults to a new name.
    init(
        writing layout: FormLayout, _ request: QueuedRequest, _ signed: SignedAddress?, as uuid: UUID = UUID(),
        in directory: QueueDirectory
    ) async throws {
        headerFields = try request.storedFields(for: UploadBody(layout))
        let body = try await directory.write(layout, for: uuid)
        self.uuid = uuid
        url = request.url
        method = request.method
        contentType = layout.contentType
        parts = body.parts
        totalBytes = body.length
        self.signed = signed
        acceptedStatuses = request.acceptedStatuses
    }

    /// Makes a form whose body is written later.
    init(_ request: QueuedRequest, as uuid: UUID) throws {
        headerFields = try request.storedFields(for: nil)
        self.uuid = uuid
        url = request.url
        method = request.method
        contentType = ""
        parts = []
        totalBytes = 0
        signed = nil
        acceptedStatuses = request.acceptedStatuses
    }
}

/// The request with a form.
struct QueuedRequest {
    let url: URL
    let method: HTTPRequest.Method
    let headerFields: HTTPFields
    var presigned: PresignedForm?
    var acceptedStatuses: Set<Int>?

    /// The header fields to store: all of the request except those that the form or the URL determines.
    fileprivate func storedFields(for body: UploadBody?) throws -> HTTPFields {
        let request = try UploadRequest(
            url: url, method: method, headerFields: headerFields, body: body, maximumResponseBytes: 0)
        var fields = request.headerFields
        fields[.contentType] = nil
        // Credentials in the URL are not stored a second time as a header field.
        if !headerFields.contains(.authorization) { fields[.authorization] = nil }
        return fields
    }
}

/// An upload whose row was not inserted yet.
struct NewUpload {
    let form: NewForm
    let conditions: UploadConditions
    let tag: Data?
}

/// The data of a presigned form besides the signed fields, which are in its body.
struct SignedAddress: Codable, Sendable {
    /// The address, including its signature if it has one.
    let url: URL
    /// When the form expires; `nil` if the expiration is not known.
    let expires: Date?
    /// The names of the app's own text fields, which are added to the signed fields or replace some of them.
    let texts: [String]

    init(_ presigned: PresignedForm, texts: [String]) {
        self.init(url: presigned.url, expires: presigned.expires, texts: texts)
    }

    private init(url: URL, expires: Date?, texts: [String]) {
        self.url = url
        self.expires = expires
        self.texts = texts
    }

    /// The same address, marked as expired after the object store has refused the form as expired.
    func expired(at time: Date) -> SignedAddress {
        SignedAddress(url: url, expires: min(time, expires ?? time), texts: texts)
    }
}

extension PresignedForm {
    /// The address without its signature, for display.
    var openURL: URL {
        guard var components = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return url }
        components.query = nil
        return components.url ?? url
    }
}
