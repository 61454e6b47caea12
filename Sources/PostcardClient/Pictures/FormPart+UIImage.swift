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
    /// A photo that lies in a file is better sent as that file: nothing is lost, and memory stays flat.
    ///
    /// - Parameters:
    ///   - image: The picture. It is encoded here and held encoded.
    ///   - name: The name of the form's field.
    ///   - filename: The name of the file; its extension becomes that of the encoding.
    ///   - encoding: How it is encoded; a JPEG unless given.
    /// - Throws: ``PictureError`` where the picture has no pixels.
    public init(
        _ image: UIImage, named name: String, filename: String? = nil, as encoding: PictureEncoding = .jpeg()
    ) throws(PictureError) {
        let bytes = encoding.quality.map { image.jpegData(compressionQuality: CGFloat($0)) } ?? image.pngData()
        self = try .picture(named: name, filename: filename, as: encoding, encoded: bytes)
    }
}
#endif
