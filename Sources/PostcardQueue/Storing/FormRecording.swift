#if Queue
import HTTPTypes
import PostcardForm

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Writes down a form for the database, and copies what belongs into the queue's directory.
struct FormRecording {
    /// The upload's own folder, where it has one.
    private(set) var folder: String?

    private let form: MultipartForm
    private let directory: QueueDirectory
    private let files: QueuedFiles

    /// More bytes than these lie beside the database rather than in it.
    private static let maximumRowBytes = 16 << 10

    init(_ form: MultipartForm, in directory: QueueDirectory, files: QueuedFiles) {
        self.form = form
        self.directory = directory
        self.files = files
    }

    /// - Returns: The form as it is kept, and the number of bytes of its body.
    /// - Throws: `FormError`, ``UploadQueueError``.
    mutating func record() throws -> (form: QueuedForm, totalBytes: Int64) {
        let layout = try form.layout()
        var parts: [QueuedForm.Part] = []
        for (index, (part, known)) in zip(form.parts, layout.parts).enumerated() {
            parts.append(
                QueuedForm.Part(
                    name: part.name, filename: part.filename, contentType: known.contentType?.value,
                    headerFields: part.headerFields.map(QueuedForm.HeaderField.init),
                    content: try content(of: part, index: index)))
        }
        do {
            if let folder { try directory.synchronize(folder) }
        } catch {
            throw failure(error)
        }
        let recorded = QueuedForm(
            boundary: form.boundary.value, normalizesLineBreaks: form.lineBreaks == .normalized, parts: parts)
        guard let totalBytes = layout.contentLength else { throw UploadQueueError.stream(named: "") }
        return (recorded, totalBytes)
    }

    private mutating func content(of part: FormPart, index: Int) throws -> QueuedForm.Content {
        switch part.content {
        case .text(let text) where text.utf8.count <= Self.maximumRowBytes:
            return .text(text)
        case .text(let text):
            // What is kept in a file is not looked at again: it has its line breaks already.
            let bytes = Data(form.lineBreaks.applied(to: text).utf8)
            return try keep(index: index) { try $0.write(bytes, to: $1, in: $2) }
        case .bytes(let bytes) where bytes.count <= Self.maximumRowBytes:
            return .bytes(bytes)
        case .bytes(let bytes):
            return try keep(index: index) { try $0.write(bytes, to: $1, in: $2) }
        case .file(let url) where files == .copied:
            return try keep(index: index) { try $0.copy(url, to: $1, in: $2) }
        case .file(let url):
            // By its whole path: the queue may be run from another folder.
            let path = url.absoluteURL.path
            return .file(path: path, try FormFileStamp(path: path, partIndex: index))
        case .stream:
            throw UploadQueueError.stream(named: part.name)
        }
    }

    private mutating func keep(
        index: Int, _ write: (QueueDirectory, _ name: String, _ folder: String) throws -> Void
    ) throws -> QueuedForm.Content {
        do {
            let folder = try folder ?? directory.makeFolder()
            self.folder = folder
            try write(directory, "\(index)", folder)
            return .copy(name: "\(index)")
        } catch {
            throw failure(error)
        }
    }

    private func failure(_ error: any Error) -> any Error {
        let isFull = (error as? CocoaError)?.code == .fileWriteOutOfSpace || "\(error)".contains("No space left")
        return isFull
            ? UploadQueueError(
                .full, "There is no room left in \(directory.url.path) for the form's files.", underlying: error)
            : .unusableDirectory(directory.url.path, error) as UploadQueueError
    }
}
#endif
