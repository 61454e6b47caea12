import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardFoundation

/// The record of a form whose picked items were not copied yet, with all that a later run of the app needs.
struct StoredForm: Codable, Sendable {
    private let boundary: String
    private let normalizesLineBreaks: Bool
    private(set) var parts: [Part]
    /// The form that a server has signed for an object store; `nil` for other servers.
    let presigned: PresignedForm?

    struct Part: Codable, Sendable {
        let name: String
        private(set) var filename: String?
        private(set) var contentType: MediaType?
        fileprivate let headerFields: [UploadRow.Field]
        fileprivate let metadata: MetadataPolicy
        /// Whether the part has a preparation. The next property is its record, or `nil` if it has none.
        fileprivate let isPrepared: Bool
        fileprivate let preparation: Data?
        fileprivate(set) var content: Content

        /// Replaces a picked item by its copied file, which is in the upload's import folder.
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
        /// An item that was not copied yet, with its record.
        case picked(Data?)
    }

    /// Records a form. Contents other than texts and picked items are copied into the folder for a later run.
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

    /// Records that the item of a part was copied.
    mutating func take(_ copy: PickedCopy, at index: Int) { parts[index].take(copy) }

    /// Makes the form after all its items were copied.
    ///
    /// - Parameters:
    ///   - live: The app's form, if this run has recorded it.
    ///   - finder: Makes the preparations of an earlier run's form again.
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
            // The initializer gives a part without a filename the name of its copied file. This removes that name.
            made.filename = part.filename
            form.append(made)
        }
        return form
    }
}

extension MultipartForm {
    /// The part at an index from the database; `nil` if there is none.
    func part(at index: Int) -> FormPart? { parts.indices.contains(index) ? parts[index] : nil }
}

/// The error if a picked item or the preparation of a part cannot be found again.
struct LostItem: Error {}
