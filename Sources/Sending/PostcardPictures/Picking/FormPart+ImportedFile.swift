#if canImport(Darwin)
public import Foundation
public import PostcardForm

extension FormPart {
    /// Makes a part from a file outside the app that the user chose with SwiftUI's `fileImporter`, a document picker or
    /// a drop.
    ///
    /// ```swift
    /// .fileImporter(isPresented: $isImporting, allowedContentTypes: [.image, .pdf]) { result in
    ///     Task { form.append(try await FormPart(importing: result.get(), named: "attachment")) }
    /// }
    /// ```
    ///
    /// Such a URL is security-scoped: the app may read it only between `startAccessingSecurityScopedResource()` and
    /// `stopAccessingSecurityScopedResource()`, and each open scope uses resources of the kernel. An upload may wait,
    /// retry and resume for hours, so the file is copied at once. Within one volume, the copy is a clone. Reading is
    /// coordinated: a file in iCloud Drive or of another file provider is downloaded first, and no other app writes to
    /// it meanwhile. A document that is a folder, such as an `.rtfd`, becomes a ZIP archive. The copied file is removed
    /// when the last copy of the part is released.
    ///
    /// - Parameters:
    ///   - url: The file. A file of the app itself needs no copy: use `.file(url)` for it.
    ///   - name: The name of the form's field.
    ///   - filename: The name of the file. Defaults to the last component of `url`, with ".zip" for an archive.
    ///   - contentType: The media type. Defaults to the type that the filename or the first bytes indicate.
    ///   - metadata: The metadata to remove from a picture or a video while the file is sent. Defaults to the location
    ///     and data about the owner. Other files are sent unchanged.
    ///   - folder: A folder for the copy, which the caller must then remove. Defaults to ``temporaryFolder``.
    /// - Throws: ``PictureError`` with code ``PictureError/Code/notLoadable`` if the file cannot be read, downloaded or
    ///   copied. `CancellationError` if the task is cancelled.
    public init(
        importing url: URL, named name: String, filename: String? = nil, contentType: MediaType? = nil,
        metadata: MetadataPolicy = .picturesWithoutLocation, in folder: URL? = nil
    ) async throws {
        let result = CallbackResult<URL> { LoadedFile.remove($0) }
        let copy: URL
        do {
            copy = try await result.value {
                // Neither class is Sendable. But any thread may cancel the coordinator, and the system does not use the
                // intent any longer when it calls the accessor.
                nonisolated(unsafe) let coordinator = NSFileCoordinator()
                nonisolated(unsafe) let intent = NSFileAccessIntent.readingIntent(with: url, options: .forUploading)
                // The result is false for a URL without a security scope, which can be read without this call.
                let isScoped = url.startAccessingSecurityScopedResource()
                coordinator.coordinate(with: [intent], queue: OperationQueue()) { error in
                    defer { if isScoped { url.stopAccessingSecurityScopedResource() } }
                    result.finish(
                        Result {
                            if let error { throw error }
                            return try LoadedFile.copy(intent.url, to: folder)
                        })
                }
                return { coordinator.cancel() }
            }
        } catch is CancellationError {
            throw CancellationError()
        } catch let error as PictureError {
            throw error
        } catch {
            throw PictureError.notLoadable("The file \(url.lastPathComponent)", underlyingError: error)
        }
        self.init(
            name: name, filename: filename ?? PictureName.imported(url.lastPathComponent, as: copy.lastPathComponent),
            contentType: contentType, content: .file(copy), metadata: metadata)
        self = owningFile(unlessIn: folder)
    }
}
#endif
