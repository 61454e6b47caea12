#if canImport(PhotosUI) && canImport(SwiftUI) && !os(tvOS)
import CoreTransferable
import Foundation
public import PhotosUI
public import PostcardForm
public import SwiftUI
import UniformTypeIdentifiers

extension PhotosPickerItem {
    /// The picked photo or film as a file part, as the library has it: nothing is encoded anew, and it is streamed
    /// from disk.
    ///
    /// ```swift
    /// for item in picked { form.append(try await item.formPart(named: "petImage")) }
    /// ```
    ///
    /// The library lends a file only for a moment; this one is a copy in the temporary folder, which the system
    /// clears. Remove it once the form was sent where many are picked.
    ///
    /// - Parameter name: The name of the form's field.
    /// - Throws: ``PictureError`` where the library gives no file; what loading it throws.
    public func formPart(named name: String) async throws -> FormPart {
        guard let picked = try await loadTransferable(type: PickedFile.self) else { throw PictureError.notLoadable }
        return .picked(
            picked.url, named: name, mimeTypes: supportedContentTypes.compactMap(\.preferredMIMEType),
            fileExtension: supportedContentTypes.first?.preferredFilenameExtension)
    }
}

/// A file of the library's, copied to where it stays.
private struct PickedFile: Transferable, Sendable {
    let url: URL

    static var transferRepresentation: some TransferRepresentation {
        FileRepresentation(importedContentType: .image) { try PickedFile(copying: $0.file) }
        FileRepresentation(importedContentType: .movie) { try PickedFile(copying: $0.file) }
    }

    init(copying file: URL) throws {
        let folder = FileManager.default.temporaryDirectory.appending(component: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        url = folder.appending(component: file.lastPathComponent)
        try FileManager.default.copyItem(at: file, to: url)
    }
}
#endif
