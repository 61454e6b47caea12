import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardFoundation

/// A form with picked items, as it is recorded before they are copied: enough to go on in a later run of the app.
struct StoredForm: Codable, Sendable {
    private let boundary: String
    private let normalizesLineBreaks: Bool
    private(set) var parts: [Part]
    /// The form that a server has signed for an object store.
    let presigned: PresignedForm?

    struct Part: Codable, Sendable {
        let name: String
        private(set) var filename: String?
        private(set) var contentType: MediaType?
        fileprivate let headerFields: [UploadRow.Field]
        fileprivate let metadata: MetadataPolicy
        /// Whether the part has a preparation, and what is recorded of it.
        fileprivate let isPrepared: Bool
        fileprivate let preparation: Data?
        fileprivate(set) var content: Content

        /// Replaces a picked item with its copy, which is in the upload's import folder.
        mutating func take(_ copy: PickedCopy) {
            filename = filename ?? copy.filename
            contentType = contentType ?? copy.contentType
            content = .file(copy.file.lastPathComponent)
        }
    }

    enum Content: Codable, Sendable {
        case text(String)
        /// A file in the upload's import folder.
        case file(String)
        /// An item that is still to be copied, and what is recorded of it.
        case picked(Data?)
    }

    /// Records a form. What is neither a text nor picked is copied: it may be gone in a later run.
    init(_ form: MultipartForm, _ presigned: PresignedForm?, in folder: ImportFolder) async throws {
        boundary = form.boundary.value
        normalizesLineBreaks = form.lineBreaks == .normalized
        self.presigned = presigned
        var parts: [Part] = []
        for (index, part) in form.parts.enumerated() {
            let content: Content
            switch part.content {
            case .text(let text): content = .text(text)
            case .picked(let item): content = .picked(item.record)
            case .bytes, .file, .stream: content = .file(try await folder.write(part, at: index))
            }
            parts.append(
                Part(
                    name: part.name, filename: part.filename, contentType: part.contentType,
                    headerFields: UploadRow.Field.list(part.headerFields), metadata: part.metadata,
                    isPrepared: part.preparation != nil, preparation: part.preparation?.record, content: content))
        }
        self.parts = parts
    }

    /// Notes that the item of a part was copied.
    mutating func take(_ copy: PickedCopy, at index: Int) { parts[index].take(copy) }

    /// The form, whose items are all copied.
    ///
    /// - Parameters:
    ///   - live: The form of the app, if this run has recorded it.
    ///   - finder: Makes the preparations of another run's form.
    /// - Throws: ``LostItem`` if a preparation cannot be made again.
    func form(in folder: ImportFolder, _ live: MultipartForm?, _ finder: (any PickedItemFinder)?) throws
        -> MultipartForm
    {
        var form = MultipartForm(
            boundary: try Boundary(boundary), lineBreaks: normalizesLineBreaks ? .normalized : .asGiven)
        for (index, part) in parts.enumerated() {
            let content: FormPart.Content
            switch part.content {
            case .text(let text): content = .text(text)
            case .file(let name): content = .file(try folder.file(name))
            case .picked: throw LostItem()
            }
            let found =
                live?.part(at: index)?.preparation ?? part.preparation.flatMap { finder?.preparation(recordedAs: $0) }
            if part.isPrepared, found == nil { throw LostItem() }
            var made = FormPart(
                name: part.name, filename: part.filename, contentType: part.contentType,
                headerFields: UploadRow.Field.fields(part.headerFields), content: content, metadata: part.metadata,
                preparation: found)
            // A file whose part has none is one of the app's bytes or streams.
            made.filename = part.filename
            form.append(made)
        }
        return form
    }
}

extension MultipartForm {
    /// The part in a place that the database names.
    func part(at index: Int) -> FormPart? { parts.indices.contains(index) ? parts[index] : nil }
}

/// An item that was picked cannot be found again.
struct LostItem: Error {}
