package import HTTPTypes
package import PostcardForm
package import PostcardFoundation

extension PresignedForm {
    /// The method of the request.
    package var method: HTTPRequest.Method { if case .put = kind { .put } else { .post } }

    /// The statuses with which an object store accepts a file. A 303 is not followed, because its `Location` already
    /// has the key and the ETag.
    package static let acceptedStatuses: Set<Int> = [200, 201, 204, 303]

    /// The header fields that the server has signed for a PUT, without `Content-Length`. Empty for a POST.
    package var requestFields: HTTPFields {
        guard case .put(let given) = kind else { return HTTPFields() }
        var fields = HTTPFields()
        for (name, value) in given.sorted(by: { $0.key < $1.key }) {
            if let name = HTTPField.Name(name), name != .contentLength { fields[name] = value }
        }
        return fields
    }

    /// The policy that the server has signed; `nil` for a PUT, and for a form without a policy.
    private var readPolicy: FormPolicy? {
        get throws(UploadError) {
            do throws(FormPolicyError) {
                return try policy
            } catch {
                throw .brokenPolicy(url, "\(error)", advice: "Check what the server signs.")
            }
        }
    }

    /// The size limits that the file must fit.
    ///
    /// - Throws: ``UploadError`` with code ``UploadError/Code/brokenPolicy`` if the policy cannot be read.
    package var limits: FormSizeLimits {
        get throws(UploadError) { FormSizeLimits(maximumFileBytes: try readPolicy?.contentLengths?.maximum) }
    }

    /// Whether the form has expired at a given time.
    package func hasExpired(at now: Date) -> Bool { expires.map { now >= $0 } ?? false }

    /// The layout of the exact bytes of the request's body.
    ///
    /// - Parameters:
    ///   - form: A form with one file, and further fields that the policy allows.
    ///   - layout: The layout of that form.
    ///   - now: The current time, to check whether the form has expired; `nil` to let the store decide.
    /// - Throws: ``UploadError`` with code ``UploadError/Code/formExpired``, ``UploadError/Code/brokenPolicy`` or
    ///   ``UploadError/Code/form``.
    package func layout(of form: MultipartForm, _ layout: FormLayout, at now: Date?) throws(UploadError) -> FormLayout {
        let files = form.parts.indices.filter { !form.parts[$0].isField }
        guard let index = files.first, files.count == 1 else {
            throw .brokenPolicy(
                url, "An object store accepts one file at a time, and the form has \(files.count).",
                advice: "Send each file in a form of its own.")
        }
        guard let bytes = layout.parts[index].contentLength else {
            throw .brokenPolicy(
                url, "The file is a stream of unknown length, which object stores do not accept.",
                advice: "Give the stream a length.")
        }
        if let now, let expires, now >= expires { throw .formExpired(url, at: expires) }
        var file = form.parts[index]
        file.contentType = layout.parts[index].contentType
        let filled: MultipartForm?
        switch kind {
        case .post(let fields):
            filled = try self.filled(form, fields, file, bytes: bytes)
        case .put(let headerFields):
            try checkPut(form, headerFields, &file, bytes: bytes)
            filled = nil
        }
        do throws(FormError) {
            if let filled { return try filled.layout() }
            return try FormLayout(contentOf: file)
        } catch {
            throw .form(error)
        }
    }
}

// MARK: - Replacing an expired form

extension UploadError {
    /// Whether a store has refused a presigned form because it has expired. Some stores respond to an expired form only
    /// with a denial of access. So a denial after the form has expired counts too.
    ///
    /// - Parameter end: When the form expires; `nil` if that is not known.
    package func isExpiration(ofFormUntil end: Date?, at now: Date) -> Bool {
        guard let problem = objectStoreProblem else { return false }
        return problem.isExpiration || problem.code == "AccessDenied" && end.map { now >= $0 } ?? false
    }
}

extension PresignedForm {
    /// The names of the text fields of a form.
    package static func textNames(of form: MultipartForm) -> [String] { form.parts.filter(\.isField).map(\.name) }

    /// Makes a body for this form from the body of an earlier form. The new body has this form's signed fields, the
    /// same file, and the app's text fields that this form's policy allows. The app's fields replace signed fields of
    /// the same name.
    ///
    /// - Parameters:
    ///   - old: The body of a form that the store did not accept, or of a PUT. The file is its last part.
    ///   - texts: The names of the text fields that the app added to the earlier form. The other fields were signed.
    /// - Throws: The errors of ``layout(of:_:at:)``; `FormError` if the earlier body cannot be read.
    package func layout(replacing old: FormLayout, texts: [String]) async throws -> FormLayout {
        guard let last = old.parts.last, let ranges = old.contentRanges, let bytes = last.contentLength else {
            throw UploadError.brokenPolicy(
                url, "The form in place of which this one was signed has no file.", advice: "Send the file again.")
        }
        var file = FormPart(
            name: "file", filename: last.filename, contentType: last.contentType, content: .bytes(Data()))
        let policy = try readPolicy
        var form = MultipartForm()
        for (part, range) in zip(old.parts, ranges).dropLast()
        where texts.contains(part.name) && policy?.allows(part.name) ?? true {
            let text = try await old.slice(range).data(maximumBytes: Self.maximumTextBytes)
            form.append(String(decoding: text, as: UTF8.self), named: part.name)
        }
        let layout: FormLayout
        switch kind {
        case .post(let fields):
            layout = try filled(form, fields, file, bytes: bytes).layout()
        case .put(let headerFields):
            try checkPut(form, headerFields, &file, bytes: bytes)
            layout = try FormLayout(contentOf: file)
        }
        return layout.withLastContent(from: old, part: old.parts.count - 1) ?? layout
    }

    /// The maximum size of a text field, in bytes. It is more than stores accept for all fields before the file.
    private static let maximumTextBytes = 64 << 10
}

// MARK: - POST

extension PresignedForm {
    /// A copy of the form with the signed fields first, then the form's own text fields, and the file last.
    private func filled(
        _ form: MultipartForm, _ signed: [String: String], _ file: FormPart, bytes: Int64
    ) throws(UploadError) -> MultipartForm {
        var file = file
        file.name = "file"
        // Without a filename, some stores read the file as a text field.
        file.filename = file.filename ?? Self.defaultFilename
        var draft = FormPolicy.Form(fields: [], filename: file.filename, fileBytes: bytes)
        // The key is the first field, so that it is easy to find in a log.
        let sorted = signed.sorted { $0.key < $1.key }
        draft.fields = (sorted.filter(Self.isKey) + sorted.filter { !Self.isKey($0) }).map { ($0.key, $0.value) }
        for part in form.parts {
            guard case .text(let text) = part.content, part.isField else { continue }
            draft.fields.removeAll { $0.name.lowercased() == part.name.lowercased() }
            draft.fields.append((part.name, form.lineBreaks.applied(to: text)))
        }
        if let policy = try readPolicy {
            draft.fill(policy, contentType: file.contentType)
            let violations = policy.violations(by: draft, at: nil)
            if let first = violations.first {
                let others = violations.dropFirst().prefix(2).map { " \($0.message) \($0.advice)" }.joined()
                throw .brokenPolicy(url, first.message, advice: first.advice + others)
            }
        }
        var filled = MultipartForm(boundary: form.boundary)
        for field in draft.fields { filled.append(field.value, named: field.name) }
        filled.append(file)
        return filled
    }

    /// The key of the object that the store makes from a form, if the key is known before the store responds.
    ///
    /// - Parameters:
    ///   - form: The form. If it has a text field `key`, that field replaces the signed key.
    ///   - filename: The name of the file that is sent.
    func key(of form: MultipartForm, filename: String?) -> String? {
        let given = form.parts.last { $0.isField && $0.name.lowercased() == "key" }
        guard let key = given?.text ?? self.key else { return nil }
        return FormPolicy.Form(fields: [("key", key)], filename: filename, fileBytes: nil).key
    }

    private static func isKey(_ field: (key: String, value: String)) -> Bool { field.key.lowercased() == "key" }

    private static let defaultFilename = "file"
}

extension FormPolicy.Form {
    /// Adds the required fields for which the policy allows only one value.
    fileprivate mutating func fill(_ policy: FormPolicy, contentType: MediaType?) {
        for condition in policy.conditions {
            guard let name = condition.field, self[name] == nil else { continue }
            switch (name.lowercased(), condition) {
            case ("bucket", _), ("key", _), (_, .contentLength), (_, .other): break
            case ("content-type", _):
                // The file's own type is used, so that a policy for another type fails before anything is sent.
                if let contentType { fields.append(("Content-Type", contentType.value)) }
            case ("success_action_status", .begins(_, let text)):
                if "201".hasPrefix(text) { fields.append((name, "201")) }
            case (_, .equals(_, let value)): fields.append((name, value))
            case (_, .begins): break
            }
        }
    }
}

// MARK: - PUT

extension PresignedForm {
    /// Checks that a file can be sent with the signed header fields. Sets the file's type to the signed `Content-Type`.
    private func checkPut(
        _ form: MultipartForm, _ given: [String: String], _ file: inout FormPart, bytes: Int64
    ) throws(UploadError) {
        if let field = form.parts.first(where: \.isField) {
            throw .brokenPolicy(
                url, "A presigned PUT sends the file alone, and the form has a field \(field.name.debugDescription).",
                advice: "Leave the field out, or have the server sign a POST.")
        }
        var fields: [String: String] = [:]
        for (name, value) in given { fields[name.lowercased()] = value }
        let missing = PresignedQuery(url).signedHeaderFields.first { name in
            fields[name] == nil && name != "content-type" && name != "content-length"
        }
        if let missing {
            throw .brokenPolicy(
                url, "The signature covers the header field \(missing), whose value is missing.",
                advice: "Have the server hand out the header fields that it signs.")
        }
        if let length = fields["content-length"], length != "\(bytes)" {
            throw .brokenPolicy(
                url, "The file has \(bytes) bytes, and the server signed a Content-Length of \(length).",
                advice: "Get a new form for this file.")
        }
        guard let type = fields["content-type"] else { return }
        do throws(FormError) {
            file.contentType = try MediaType(type)
        } catch {
            throw .form(error)
        }
    }
}

extension FormPart {
    /// Whether the part is a text field, and not a file.
    fileprivate var isField: Bool { filename == nil && text != nil }

    fileprivate var text: String? { if case .text(let text) = content { text } else { nil } }
}
