#if canImport(UIKit)
public import PostcardForm
public import UIKit

extension FormPart {
    /// A picture in memory as a file part.
    ///
    /// ```swift
    /// form.append(try FormPart(image, named: "petImage", filename: "choco.jpg"))
    /// ```
    ///
    /// If the photo is a file, send the file instead: no quality is lost, and memory stays flat.
    ///
    /// - Parameters:
    ///   - image: The picture. It is encoded at once, and kept in memory encoded.
    ///   - name: The name of the form's field.
    ///   - filename: The name of the file; its extension becomes that of the encoding.
    ///   - encoding: How it is encoded. Defaults to JPEG.
    /// - Throws: ``PictureError`` with code ``PictureError/Code/notEncodable`` if the picture has no pixels.
    public init(
        _ image: UIImage, named name: String, filename: String? = nil, as encoding: PictureEncoding = .jpeg()
    ) throws(PictureError) {
        let bytes = encoding.quality.map { image.jpegData(compressionQuality: CGFloat($0)) } ?? image.pngData()
        self = try .picture(named: name, filename: filename, as: encoding, encoded: bytes)
    }
}
#endif
