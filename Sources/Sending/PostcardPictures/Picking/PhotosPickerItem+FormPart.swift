#if canImport(PhotosUI) && canImport(SwiftUI) && !os(tvOS)
import CoreTransferable
public import Foundation
public import PhotosUI
public import PostcardForm
public import SwiftUI
import UniformTypeIdentifiers

extension PhotosPickerItem {
    /// Loads the picked photo or video and makes a part from it. A file that is only in iCloud is downloaded first. The
    /// file is not encoded again here, and is streamed from disk.
    ///
    /// Set `preferredItemEncoding` to `.current` to send the original, such as a photo in Apple ProRAW. By default the
    /// picker may convert HEIC to JPEG and HEVC to H.264 before the file is loaded.
    ///
    /// ```swift
    /// PhotosPicker("Add photos", selection: $picked, matching: .images, preferredItemEncoding: .current)
    /// ```
    ///
    /// ```swift
    /// for item in picked { form.append(try await item.formPart(named: "petImage")) }
    /// ```
    ///
    /// The library deletes its file soon, so the part has a copy, which is removed when the last copy of the part is
    /// released. Copying does not run on the caller's actor.
    ///
    /// On iOS 18 the picker's `Progress` is indeterminate: it does not count bytes. `PHPickerResult.formPart` also
    /// reports the progress of a download.
    ///
    /// - Parameters:
    ///   - name: The name of the form's field.
    ///   - metadata: The metadata to remove while the file is sent. Defaults to the location and data about the owner.
    ///   - folder: A folder for the copy, which the caller must then remove. Defaults to `FormPart.temporaryFolder`.
    ///   - progress: A progress with one unit for each item. Cancelling the progress cancels loading. Defaults to none.
    /// - Throws: ``PictureError`` with code ``PictureError/Code/notLoadable`` if the library gives no file, or if the
    ///   file cannot be loaded or copied. `CancellationError` if the task or `progress` is cancelled, which also ends a
    ///   download from iCloud.
    @concurrent
    public func formPart(
        named name: String, metadata: MetadataPolicy = .withoutLocation, in folder: URL? = nil,
        reportingTo progress: Progress? = nil
    ) async throws -> FormPart {
        let result = CallbackResult<PickedFile> { LoadedFile.remove($0.url) }
        // The variant of this call without a handler returns no Progress. This Progress is indeterminate, which is
        // known to Apple (developer.apple.com/forums/thread/768863), but it can cancel the call.
        let picked = try await result.value {
            let loading = loadTransferable(type: PickedFile.self) { loaded in
                result.finish(
                    Result {
                        do {
                            if let file = try loaded.get() { return file }
                        } catch {
                            if progress?.isCancelled == true { throw CancellationError() }
                            if let error = error as? PictureError { throw error }
                            throw PictureError.notLoadable("The picked item", underlyingError: error)
                        }
                        throw PictureError.notLoadable("The picked item", underlyingError: nil)
                    })
            }
            progress?.addChild(loading, withPendingUnitCount: 1)
            return { loading.cancel() }
        }
        return .picked(
            try picked.moved(to: folder), in: folder, called: picked.filename, named: name,
            mimeTypes: supportedContentTypes.compactMap(\.preferredMIMEType),
            fileExtension: supportedContentTypes.first?.preferredFilenameExtension, metadata: metadata)
    }
}

/// A copy of a photo library file, made while that file exists.
private struct PickedFile: Transferable, Sendable {
    let url: URL
    let filename: String

    static var transferRepresentation: some TransferRepresentation {
        FileRepresentation(importedContentType: .image) { try PickedFile(copying: $0.file) }
        FileRepresentation(importedContentType: .movie) { try PickedFile(copying: $0.file) }
    }

    init(copying file: URL) throws {
        filename = file.lastPathComponent
        url = try LoadedFile.copy(file, to: nil)
    }

    /// Moves the copy to another folder, on the same volume if possible. If moving fails, removes the copy.
    func moved(to folder: URL?) throws(PictureError) -> URL {
        guard let folder else { return url }
        do {
            let file = try LoadedFile.place(in: folder, for: url.lastPathComponent)
            try FileManager.default.moveItem(at: url, to: file)
            return file
        } catch {
            LoadedFile.remove(url)
            throw .notLoadable("The picked item", underlyingError: error)
        }
    }
}
#endif
