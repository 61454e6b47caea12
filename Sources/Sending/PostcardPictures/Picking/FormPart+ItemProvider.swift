#if canImport(UniformTypeIdentifiers)
public import Foundation
public import PostcardForm
import UniformTypeIdentifiers

extension NSItemProvider {
    /// Loads the item's file and makes a part from it, for pickers, drag and drop, paste and share extensions.
    ///
    /// ```swift
    /// let loading = Progress(totalUnitCount: Int64(providers.count))
    /// for provider in providers {
    ///     form.append(try await provider.formPart(named: "petImage", reportingTo: loading))
    /// }
    /// ```
    ///
    /// The first image or movie that the item offers is loaded, without encoding it again. If there is none, the item's
    /// first other file is loaded. For a Live Photo, the still picture is loaded. The part's filename is the item's
    /// name, with the extension of the loaded file.
    ///
    /// The system deletes its file right after delivering it, so the part has a copy. Within one volume, the copy is a
    /// clone. The copied file is removed when the last copy of the part is released.
    ///
    /// - Parameters:
    ///   - name: The name of the form's field.
    ///   - preferred: The media types that the server accepts, most preferred first, such as `[.jpeg]`. The first of
    ///     these types that the item offers is loaded. Defaults to none: the type with the most detail is loaded.
    ///   - metadata: The metadata to remove while the file is sent. Defaults to the location and data about the owner.
    ///   - folder: A folder for the copy, which the caller must then remove. Defaults to `FormPart.temporaryFolder`.
    ///   - progress: A progress with one unit for each item. Cancelling the progress cancels loading. Defaults to none.
    /// - Throws: ``PictureError`` with code ``PictureError/Code/noFile`` if the item offers no file, and
    ///   ``PictureError/Code/notLoadable`` if its file cannot be loaded or copied. `CancellationError` if the task or
    ///   `progress` is cancelled, which also ends a download from iCloud.
    public func formPart(
        named name: String, preferring preferred: [MediaType] = [], metadata: MetadataPolicy = .withoutLocation,
        in folder: URL? = nil, reportingTo progress: Progress? = nil
    ) async throws -> FormPart {
        let identifiers = registeredTypeIdentifiers
        guard let type = OfferedType.best(of: identifiers.map(OfferedType.init), preferring: preferred) else {
            throw PictureError.noFile(offered: identifiers)
        }
        let suggestedName = suggestedName
        let result = CallbackResult<FormPart> { part in
            if case .file(let copy) = part.content { LoadedFile.remove(copy) }
        }
        return try await result.value {
            let loading = loadFileRepresentation(forTypeIdentifier: type.identifier) { file, error in
                // The system deletes the file when this closure returns.
                result.finish(
                    Result {
                        if progress?.isCancelled == true { throw CancellationError() }
                        guard let file else {
                            throw PictureError.notLoadable("The item's file", underlyingError: error)
                        }
                        return try .loaded(
                            file, named: name, suggestedName: suggestedName, type: type, to: folder, metadata: metadata)
                    })
            }
            progress?.addChild(loading, withPendingUnitCount: 1)
            return { loading.cancel() }
        }
    }
}

extension OfferedType {
    /// Describes a type with the system's data about it.
    init(_ identifier: String) {
        let type = UTType(identifier)
        let kind: Kind =
            switch type {
            case nil: .unusable
            // Packages and bundles are directories. Links are offered as bytes that a server cannot use.
            case let type? where type.conforms(to: .directory) || type.conforms(to: .url): .unusable
            case let type? where type.conforms(to: .image): .image
            case let type? where type.conforms(to: .movie): .movie
            case let type? where type.conforms(to: .data): .data
            default: .unusable
            }
        self.init(
            identifier, kind, mimeType: type?.preferredMIMEType, fileExtension: type?.preferredFilenameExtension)
    }
}
#endif

#if canImport(PhotosUI) && !os(tvOS) && !os(watchOS)
public import Foundation
public import PhotosUI
public import PostcardForm

extension PHPickerResult {
    /// Loads the picked item's file and makes a part from it, like `NSItemProvider.formPart(named:)`.
    ///
    /// ```swift
    /// func picker(_ picker: PHPickerViewController, didFinishPicking results: [PHPickerResult]) {
    ///     Task {
    ///         for result in results { form.append(try await result.formPart(named: "petImage")) }
    ///     }
    /// }
    /// ```
    ///
    /// The picker may convert pictures and videos to a more common format, unless its configuration's
    /// `preferredAssetRepresentationMode` is `.current`.
    ///
    /// - Parameters:
    ///   - name: The name of the form's field.
    ///   - preferred: The media types that the server accepts, most preferred first. Defaults to none.
    ///   - metadata: The metadata to remove while the file is sent. Defaults to the location and data about the owner.
    ///   - folder: A folder for the copy, which the caller must then remove. Defaults to `FormPart.temporaryFolder`.
    ///   - progress: A progress with one unit for each item. Defaults to none.
    /// - Throws: ``PictureError`` if there is no file or it cannot be loaded; `CancellationError` if the task or
    ///   `progress` is cancelled.
    public func formPart(
        named name: String, preferring preferred: [MediaType] = [], metadata: MetadataPolicy = .withoutLocation,
        in folder: URL? = nil, reportingTo progress: Progress? = nil
    ) async throws -> FormPart {
        try await itemProvider.formPart(
            named: name, preferring: preferred, metadata: metadata, in: folder, reportingTo: progress)
    }
}
#endif
