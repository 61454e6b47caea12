#if canImport(PhotosUI) && canImport(SwiftUI) && !os(tvOS)
import CoreTransferable
public import Foundation
public import PhotosUI
public import PostcardForm
public import SwiftUI
import UniformTypeIdentifiers

extension PhotosPickerItem {
    /// The picked photo or video as a file part. It is not encoded again here, and it is streamed from disk.
    ///
    /// Set `preferredItemEncoding` to `.current` if the original is to be sent. By default the picker chooses an
    /// encoding, and may convert HEIC to JPEG and HEVC to H.264 before the item is loaded.
    ///
    /// ```swift
    /// PhotosPicker("Add photos", selection: $picked, matching: .images, preferredItemEncoding: .current)
    /// ```
    ///
    /// ```swift
    /// for item in picked { form.append(try await item.formPart(named: "petImage")) }
    /// ```
    ///
    /// The library lends a file only for a moment, so the part holds a copy, which belongs to the caller: remove it
    /// after the upload.
    ///
    /// - Parameters:
    ///   - name: The name of the form's field.
    ///   - metadata: What is removed while the file is sent. Defaults to where it was taken and whose it is.
    ///   - folder: The folder for the copy. Defaults to `FormPart.temporaryFolder`.
    /// - Throws: ``PictureError`` if the library gives no file, and the error of the system if loading it fails.
    public func formPart(
        named name: String, metadata: MetadataPolicy = .withoutLocation, in folder: URL? = nil
    ) async throws -> FormPart {
        guard let picked = try await loadTransferable(type: PickedFile.self) else {
            throw PictureError.notLoadable("The picked item", underlyingError: nil)
        }
        var file = picked.url
        if let folder {
            file = try LoadedFile.place(in: folder, for: picked.url.lastPathComponent)
            try FileManager.default.moveItem(at: picked.url, to: file)
        }
        return .picked(
            file, called: picked.filename, named: name,
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
}
#endif
