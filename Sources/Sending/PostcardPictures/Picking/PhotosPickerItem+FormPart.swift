#if canImport(PhotosUI) && canImport(SwiftUI) && !os(tvOS)
import CoreTransferable
public import Foundation
public import PhotosUI
public import PostcardForm
public import SwiftUI
import UniformTypeIdentifiers

extension PhotosPickerItem {
    /// Loads the picked photo or video and makes it a part of a form. A file that is only in iCloud is downloaded
    /// first. The file is not encoded again here, and is streamed from disk.
    ///
    /// Set `preferredItemEncoding` to `.current` if the original is to be sent, such as a photo in Apple ProRAW. By
    /// default the picker chooses an encoding, and may convert HEIC to JPEG and HEVC to H.264 before it is loaded.
    ///
    /// ```swift
    /// PhotosPicker("Add photos", selection: $picked, matching: .images, preferredItemEncoding: .current)
    /// ```
    ///
    /// ```swift
    /// for item in picked { form.append(try await item.formPart(named: "petImage")) }
    /// ```
    ///
    /// The library lends a file only for a moment, so the part holds a copy, which is removed with the part's last
    /// copy. It is not made on the caller's actor.
    ///
    /// The picker may report that it is loading, but not how much it has: on iOS 18 its `Progress` is indeterminate.
    /// `PHPickerResult.formPart` also counts what is downloaded.
    ///
    /// - Parameters:
    ///   - name: The name of the form's field.
    ///   - metadata: What is removed while the file is sent. Defaults to where it was taken and whose it is.
    ///   - folder: A folder for the copy, which then belongs to the caller. Defaults to `FormPart.temporaryFolder`.
    ///   - progress: Counts this item as one of its units, so make it with as many units as there are items. Cancelling
    ///     it cancels loading. Defaults to none.
    /// - Throws: ``PictureError`` with code ``PictureError/Code/notLoadable`` if the library gives no file, or if it
    ///   cannot be loaded or copied. `CancellationError` if the task or `progress` is cancelled, which also ends a
    ///   download from iCloud.
    @concurrent
    public func formPart(
        named name: String, metadata: MetadataPolicy = .withoutLocation, in folder: URL? = nil,
        reportingTo progress: Progress? = nil
    ) async throws -> FormPart {
        let result = CallbackResult<PickedFile> { LoadedFile.remove($0.url) }
        // The same call without a handler has no Progress. Apple's engineers know that this one is indeterminate
        // (developer.apple.com/forums/thread/768863), and it can be cancelled all the same.
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

/// A file of the library, copied to where it stays.
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

    /// The file in another folder, on the same volume if possible. It is removed if it cannot be moved.
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
