import PostcardForm
import PostcardFoundation

extension FormPart {
    /// Makes a part from an encoded picture. Throws ``PictureError`` if encoding has failed and the bytes are `nil`.
    static func picture(
        named name: String, filename: String?, as encoding: PictureEncoding, encoded: Data?
    ) throws(PictureError) -> FormPart {
        guard let encoded, !encoded.isEmpty else { throw .notEncodable(encoding) }
        let pictureName = PictureName(filename, encodedAs: encoding)
        return FormPart(
            name: name, filename: pictureName.filename, contentType: pictureName.contentType, content: .bytes(encoded))
    }

    /// The same part, made to own its file: releasing its last copy removes the file. Files in `folder` stay.
    func owningFile(unlessIn folder: URL?) -> FormPart {
        guard folder == nil, case .file(let file) = content else { return self }
        var part = self
        part.ownedFile = OwnedFile(file)
        return part
    }

    /// Makes a part from a file of the photo library that was already copied to `file`.
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

    /// Copies a file that the system will delete soon, and makes a part from the copy. Metadata is removed only from
    /// pictures and videos: other items, such as documents, are sent unchanged.
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

/// The encoding of a picture that is in memory.
public struct PictureEncoding: Sendable, Hashable {
    /// The media type of the encoded bytes.
    let contentType: MediaType
    let fileExtension: String
    /// The quality from 0, the smallest file, to 1, the best picture; `nil` for a lossless format.
    let quality: Double?

    /// A JPEG, without transparency and without the camera's metadata, such as the location.
    ///
    /// - Parameter quality: The quality from 0, the smallest file, to 1, the best picture. Above 0.9 the file becomes
    ///   much larger and the picture hardly better.
    public static func jpeg(quality: Double = 0.85) -> PictureEncoding {
        let isNumber = !quality.isNaN
        return PictureEncoding(
            contentType: .jpeg, fileExtension: "jpg", quality: isNumber ? min(max(quality, 0), 1) : 0.85)
    }

    /// A PNG: lossless, with transparency, and for a photo many times as large as a JPEG.
    public static let png = PictureEncoding(contentType: .png, fileExtension: "png", quality: nil)
}
