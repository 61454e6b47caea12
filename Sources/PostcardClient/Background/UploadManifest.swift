import Foundation
import HTTPTypes

/// What the folder of background uploads says of one upload: a JSON file beside its body.
///
/// No path is in it: on iOS the folders of an app move when it is updated.
struct UploadManifest: Codable, Sendable {
    /// Rises when an older program would misread the file.
    static let currentVersion = 1

    var version = UploadManifest.currentVersion
    let id: UUID
    let url: URL
    let method: String
    /// The form's own, with its boundary.
    let contentType: String
    private let headerFields: [Field]
    /// The names of the fields that were sent and are not kept.
    let withheldFields: [String]
    let bodyLength: Int64
    let filenames: [String]
    let added: Date
    /// Whether the system must wait for a network that is not metered; where nothing is said it need not.
    let needsUnmeteredNetwork: Bool?
    /// Whether somebody follows the upload by an identity of their own, and it is theirs to begin it anew.
    let isFollowed: Bool?
    var attempts = 0
    var state = State.ready

    enum State: Codable, Sendable {
        /// The body is written and no task has been begun.
        case ready
        /// A task has been begun, or is about to be.
        case started
        case done(answer: Answer)
        case failed(code: String, message: String, answer: Answer?)
        case cancelled
    }

    /// A header field as JSON has it.
    struct Field: Codable, Sendable {
        let name: String
        let value: String
    }

    /// A server's answer.
    struct Answer: Codable, Sendable {
        let status: Int
        let headerFields: [Field]
        let body: Data
    }

    init(
        id: UUID, url: URL, method: HTTPRequest.Method, contentType: String, headerFields: HTTPFields,
        bodyLength: Int64, filenames: [String], added: Date, needsUnmeteredNetwork: Bool? = nil,
        isFollowed: Bool? = nil
    ) {
        self.id = id
        self.url = url
        self.method = method.rawValue
        self.contentType = contentType
        self.headerFields = headerFields.filter { !$0.name.isSecret }.map(Field.init)
        withheldFields = headerFields.filter { $0.name.isSecret }.map(\.name.rawName)
        self.bodyLength = bodyLength
        self.filenames = filenames
        self.added = added
        self.needsUnmeteredNetwork = needsUnmeteredNetwork
        self.isFollowed = isFollowed
    }

    /// The header fields to send: those kept, and in place of or beside them those given anew.
    ///
    /// - Throws: ``BackgroundUploadError`` where one that is not kept was not given.
    func headerFields(adding given: HTTPFields) throws(BackgroundUploadError) -> HTTPFields {
        let missing = withheldFields.filter { name in HTTPField.Name(name).map { !given.contains($0) } ?? true }
        if !missing.isEmpty { throw .headerFieldsNeeded(id, missing) }
        var fields = HTTPFields(headerFields)
        let names = Set(given.map(\.name)).subtracting([.idempotencyKey].compactMap { $0 })
        for name in names { fields[fields: name] = given[fields: name] }
        return fields
    }
}

extension UploadManifest.Field {
    init(_ field: HTTPField) {
        name = field.name.rawName
        value = field.value
    }
}

extension HTTPFields {
    init(_ fields: [UploadManifest.Field]) {
        self.init()
        for field in fields {
            if let name = HTTPField.Name(field.name) { append(HTTPField(name: name, value: field.value)) }
        }
    }
}

extension UploadManifest.Answer {
    init(_ response: UploadResponse) {
        status = response.status.code
        headerFields = response.headerFields.map(UploadManifest.Field.init)
        body = response.body
    }
}

extension UploadResponse {
    /// The answer that a manifest keeps.
    init(_ answer: UploadManifest.Answer, attempts: Int, bytesSent: Int64) {
        self.init(
            status: HTTPResponse.Status(code: min(max(answer.status, 0), 999)),
            headerFields: HTTPFields(answer.headerFields), body: answer.body)
        self.attempts = attempts
        self.bytesSent = bytesSent
    }
}

extension HTTPField.Name {
    /// Whether its value lets somebody in, and is therefore not written to disk.
    fileprivate var isSecret: Bool {
        if self == .idempotencyKey { return false }
        let words = [
            "authentication", "authorization", "cookie", "credential", "passw", "secret", "session", "signature",
            "token",
        ]
        return ["auth", "key"].contains { canonicalName.hasSuffix($0) } || words.contains { canonicalName.contains($0) }
    }
}
