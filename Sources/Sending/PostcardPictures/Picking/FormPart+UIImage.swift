#if canImport(UIKit)
public import PostcardForm
public import UIKit

extension FormPart {
    /// Makes a file part from a picture in memory.
    ///
    /// ```swift
    /// form.append(try FormPart(image, named: "petImage", filename: "choco.jpg"))
    /// ```
    ///
    /// If the photo is a file, send the file instead, which loses no quality and needs little memory.
    ///
    /// - Parameters:
    ///   - image: The picture. It is encoded at once, and the encoded bytes are kept in memory.
    ///   - name: The name of the form's field.
    ///   - filename: The name of the file. Its extension is changed to that of the encoding.
    ///   - encoding: The encoding of the picture. Defaults to JPEG.
    /// - Throws: ``PictureError`` with code ``PictureError/Code/notEncodable`` if the picture has no pixels.
    public init(
        _ image: UIImage, named name: String, filename: String? = nil, as encoding: PictureEncoding = .jpeg()
    ) throws(PictureError) {
        let bytes = encoding.quality.map { image.jpegData(compressionQuality: CGFloat($0)) } ?? image.pngData()
        self = try .picture(named: name, filename: filename, as: encoding, encoded: bytes)
    }
}
#endif
