import PostcardForm

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension FormPart {
    /// The part of a picture that was encoded; where encoding gave nothing, the error that says so.
    static func picture(
        named name: String, filename: String?, as encoding: PictureEncoding, encoded: Data?
    ) throws(PictureError) -> FormPart {
        guard let encoded, !encoded.isEmpty else { throw .notEncodable(encoding) }
        let pictureName = PictureName(filename, encodedAs: encoding)
        return FormPart(
            name: name, filename: pictureName.filename, contentType: pictureName.contentType, content: .bytes(encoded))
    }

    /// The part of a file that a photo library gave.
    static func picked(
        _ file: URL, named name: String, mimeTypes: [String], fileExtension: String?
    ) -> FormPart {
        let pictureName = PictureName(file.lastPathComponent, mimeTypes: mimeTypes, fileExtension: fileExtension)
        return FormPart(
            name: name, filename: pictureName.filename, contentType: pictureName.contentType, content: .file(file))
    }
}
