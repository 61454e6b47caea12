import PostcardForm
import PostcardFoundation

extension FormPart {
    /// The part of an encoded picture. Throws ``PictureError`` if encoding gave nothing.
    static func picture(
        named name: String, filename: String?, as encoding: PictureEncoding, encoded: Data?
    ) throws(PictureError) -> FormPart {
        guard let encoded, !encoded.isEmpty else { throw .notEncodable(encoding) }
        let pictureName = PictureName(filename, encodedAs: encoding)
        return FormPart(
            name: name, filename: pictureName.filename, contentType: pictureName.contentType, content: .bytes(encoded))
    }

    /// The same part, which removes its file with its last copy, unless the caller chose the file's folder.
    func owningFile(unlessIn folder: URL?) -> FormPart {
        guard folder == nil, case .file(let file) = content else { return self }
        var part = self
        part.ownedFile = OwnedFile(file)
        return part
    }

    /// The part of a file that a photo library gave, which is already copied to `file`.
    static func picked(
        _ file: URL, in folder: URL?, called filename: String, named name: String, mimeTypes: [String],
        fileExtension: String?,
        metadata: MetadataPolicy
    ) -> FormPart {
        let pictureName = PictureName(filename, mimeTypes: mimeTypes, fileExtension: fileExtension)
        return FormPart(
            name: name, filename: pictureName.filename, contentType: pictureName.contentType, content: .file(file),
            metadata: metadata
        ).owningFile(unlessIn: folder)
    }

    /// The part of a file that the system lends for a moment, with a copy of it.
    ///
    /// Only pictures and videos have metadata to remove: other items, such as documents, are sent as they are.
    ///
    /// - Throws: ``PictureError`` if the file cannot be copied.
    static func loaded(
        _ file: URL, named name: String, suggestedName: String?, type: OfferedType, to folder: URL?,
        metadata: MetadataPolicy
    ) throws(PictureError) -> FormPart {
        let pictureName = PictureName(suggested: suggestedName, file: file.lastPathComponent, type: type)
        do {
            return FormPart(
                name: name, filename: pictureName.filename, contentType: pictureName.contentType,
                content: .file(try LoadedFile.copy(file, to: folder)),
                metadata: type.kind == .image || type.kind == .movie ? metadata : .asIs
            ).owningFile(unlessIn: folder)
        } catch let error as PictureError {
            throw error
        } catch {
            throw .notLoadable("The item's file", underlyingError: error)
        }
    }
}

/// How a picture in memory is encoded before it is sent.
public struct PictureEncoding: Sendable, Hashable {
    /// What the encoded bytes are.
    let contentType: MediaType
    let fileExtension: String
    /// The quality from 0, the smallest, to 1, the best; `nil` for a format without loss.
    let quality: Double?

    /// A JPEG. It has no transparency, and loses the camera's metadata, such as the location.
    ///
    /// - Parameter quality: From 0, the smallest, to 1, the best. Above 0.9 the bytes grow much and the picture
    ///   hardly.
    public static func jpeg(quality: Double = 0.85) -> PictureEncoding {
        let isNumber = !quality.isNaN
        return PictureEncoding(
            contentType: .jpeg, fileExtension: "jpg", quality: isNumber ? min(max(quality, 0), 1) : 0.85)
    }

    /// A PNG: without loss, with transparency, and many times as large for a photo.
    public static let png = PictureEncoding(contentType: .png, fileExtension: "png", quality: nil)
}
