#if Queue
import HTTPTypes
import PostcardForm

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A form as the database has it: from it comes the same body, byte for byte, in every process.
struct QueuedForm: Codable, Sendable {
    let boundary: String
    let normalizesLineBreaks: Bool
    let parts: [Part]

    struct Part: Codable, Sendable {
        let name: String
        let filename: String?
        let contentType: String?
        let headerFields: [HeaderField]
        let content: Content
    }

    struct HeaderField: Codable, Sendable {
        let name: String
        let value: String

        init(_ field: HTTPField) {
            name = field.name.rawName
            value = field.value
        }
    }

    enum Content: Codable, Sendable {
        case text(String)
        case bytes(Data)
        /// A file that stays where it is, and how it was when the form was enqueued.
        case file(path: String, FormFileStamp)
        /// A file in the upload's own folder.
        case copy(name: String)
    }

    /// Makes the form again.
    ///
    /// - Parameter folder: The upload's own folder.
    /// - Throws: `FormError` where a file is gone or is no longer what it was.
    func form(folder: URL?) throws(FormError) -> MultipartForm {
        var form = MultipartForm(
            boundary: try Boundary(boundary), lineBreaks: normalizesLineBreaks ? .normalized : .asGiven)
        for (index, part) in parts.enumerated() {
            form.append(try part.part(folder: folder, index: index))
        }
        return form
    }
}

extension QueuedForm.Part {
    fileprivate func part(folder: URL?, index: Int) throws(FormError) -> FormPart {
        let content: FormPart.Content
        switch self.content {
        case .text(let text): content = .text(text)
        case .bytes(let bytes): content = .bytes(bytes)
        case .file(let path, let stamp):
            try stamp.check(path: path, partIndex: index)
            content = .file(URL(filePath: path))
        case .copy(let name):
            content = .file((folder ?? URL(filePath: "")).appending(path: name))
        }
        var part = FormPart(name: name, headerFields: HTTPFields(headerFields), content: content)
        part.filename = filename
        part.contentType = try contentType.map { value throws(FormError) in try MediaType(value) }
        return part
    }
}

extension HTTPFields {
    init(_ fields: [QueuedForm.HeaderField]) {
        self.init()
        for field in fields {
            if let name = HTTPField.Name(field.name) { append(HTTPField(name: name, value: field.value)) }
        }
    }
}
#endif
