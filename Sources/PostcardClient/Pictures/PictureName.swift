import PostcardForm

/// The filename and media type under which a picture goes out that comes from somewhere else than a file.
struct PictureName: Equatable {
    let filename: String
    let contentType: MediaType?

    /// For a picture that was encoded anew: what its name says of its format must be true.
    ///
    /// - Parameters:
    ///   - filename: The name given, with the extension that its format had before, another one, or none.
    ///   - encoding: What it is now.
    init(_ filename: String?, encodedAs encoding: PictureEncoding) {
        let stem = Self.stem(of: filename ?? "", dropping: { MediaType.forExtension(of: $0) != nil })
        let isRight = filename.flatMap(MediaType.forExtension(of:)) == encoding.contentType
        self.filename = isRight ? filename ?? "" : "\(stem.isEmpty ? "picture" : stem).\(encoding.fileExtension)"
        contentType = encoding.contentType
    }

    /// For a picture out of a library, which says what it is and how its file is called.
    ///
    /// - Parameters:
    ///   - file: The name of the file that the library gave.
    ///   - mimeTypes: The types that the library names, the best first.
    ///   - fileExtension: The extension that goes with the best of them.
    init(_ file: String, mimeTypes: [String], fileExtension: String?) {
        // The file's own extension tells what was given; the library's types also name what it could have given.
        let known = MediaType.forExtension(of: file)
        contentType = known ?? mimeTypes.lazy.compactMap { try? MediaType($0) }.first
        let hasExtension = !Self.stem(of: file, dropping: { _ in true }).isEmpty && file.dropFirst().contains(".")
        let name = file.isEmpty ? "picture" : file
        filename = hasExtension || known != nil ? name : name + (fileExtension.map { ".\($0)" } ?? "")
    }

    private static func stem(of filename: String, dropping isExtension: (String) -> Bool) -> String {
        guard let dot = filename.lastIndex(of: "."), isExtension(filename) else { return filename }
        return String(filename[..<dot])
    }
}
