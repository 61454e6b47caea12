import PostcardForm

/// The filename and media type of a picture that is not a file of the caller.
struct PictureName: Equatable {
    let filename: String
    let contentType: MediaType?

    /// The name of an encoded picture, with the extension of its new format.
    ///
    /// - Parameters:
    ///   - filename: The caller's name, with any extension or none.
    ///   - encoding: The encoding of the picture.
    init(_ filename: String?, encodedAs encoding: PictureEncoding) {
        let stem = Self.stem(of: filename ?? "", dropping: { MediaType.forExtension(of: $0) != nil })
        let isRight = filename.flatMap(MediaType.forExtension(of:)) == encoding.contentType
        self.filename = isRight ? filename ?? "" : "\(stem.isEmpty ? "picture" : stem).\(encoding.fileExtension)"
        contentType = encoding.contentType
    }

    /// The name of a picture from a library that lists its file and its types.
    ///
    /// - Parameters:
    ///   - file: The name of the library's file.
    ///   - mimeTypes: The types that the library lists, most preferred first.
    ///   - fileExtension: The extension of the most preferred type.
    init(_ file: String, mimeTypes: [String], fileExtension: String?) {
        // The file's own extension shows its type. The library's list also has types into which the library could have
        // converted the file.
        let known = MediaType.forExtension(of: file)
        contentType = known ?? mimeTypes.lazy.compactMap { try? MediaType($0) }.first
        let name = file.isEmpty ? "picture" : file
        let hasExtension = !Self.extension(of: file).isEmpty
        filename = hasExtension || known != nil ? name : name + (fileExtension.map { ".\($0)" } ?? "")
    }

    /// The name of a file that was loaded for an item with its own name.
    ///
    /// - Parameters:
    ///   - suggestedName: The item's name, often without an extension, or with the extension of another format.
    ///   - file: The name of the loaded file, which the system may have generated.
    ///   - type: The type that was requested.
    init(suggested suggestedName: String?, file: String, type: OfferedType) {
        let known = MediaType.forExtension(of: file)
        let type = known == nil ? type : OfferedType(type, fileExtension: Self.extension(of: file))
        contentType = known ?? type.mediaType

        // A filename must not contain a slash, nor a colon, which Finder shows as a slash.
        let suggestion = (suggestedName ?? "").map { $0 == "/" || $0 == ":" ? "-" : String($0) }.joined()
        let given = suggestion.allSatisfy { $0 == "." || $0 == " " } ? file : suggestion
        let suffix = Self.extension(of: given)
        guard let wanted = type.fileExtension, !wanted.isEmpty, suffix.lowercased() != wanted.lowercased() else {
            filename = given.isEmpty ? "file" : given
            return
        }
        let meant = suffix.isEmpty ? nil : MediaType.forExtension(of: given)
        if meant != nil, meant == contentType {
            filename = given
        } else {
            let stem = meant == nil ? given : String(given.dropLast(suffix.count + 1))
            filename = "\(stem.isEmpty ? "file" : stem).\(wanted)"
        }
    }

    /// The name of an asset's file, based on the original's name, because an edited version is called "FullSizeRender".
    ///
    /// - Parameters:
    ///   - original: The name of the asset's original file, such as "IMG_0001.HEIC".
    ///   - file: The name of the file to send.
    ///   - type: The type of the file to send.
    init(original: String, file: String, type: OfferedType) {
        let suffix = Self.extension(of: original)
        let stem = suffix.isEmpty ? original : String(original.dropLast(suffix.count + 1))
        // If the original is sent, its extension is kept as the camera wrote it, such as ".HEIC".
        self.init(suggested: original == file ? original : stem, file: file, type: type)
    }

    /// The filename of an imported file. The copy of a folder is an archive with another extension.
    static func imported(_ file: String, as copy: String) -> String {
        let isArchive = Self.extension(of: copy).lowercased() == "zip"
        return isArchive && Self.extension(of: file).lowercased() != "zip" ? "\(file).zip" : file
    }

    private static func stem(of filename: String, dropping isExtension: (String) -> Bool) -> String {
        guard let dot = filename.lastIndex(of: "."), isExtension(filename) else { return filename }
        return String(filename[..<dot])
    }

    /// The extension of a filename; empty if there is no dot after the first character.
    private static func `extension`(of filename: String) -> String {
        guard let dot = filename.lastIndex(of: "."), dot != filename.startIndex else { return "" }
        return String(filename[dot...].dropFirst())
    }
}

/// A type that an item is offered in, such as `public.heic`, with the properties for choosing the type to load.
struct OfferedType: Hashable, Sendable {
    /// The kind of content of a type.
    enum Kind: Sendable {
        case image
        case movie
        /// A file of any other type.
        case data
        /// An item that is not a single file: a folder, a package or a link.
        case unusable
    }

    /// The uniform type identifier.
    let identifier: String
    let kind: Kind
    let mimeType: String?
    let fileExtension: String?

    init(_ identifier: String, _ kind: Kind, mimeType: String?, fileExtension: String?) {
        self.identifier = identifier
        self.kind = kind
        self.mimeType = mimeType
        self.fileExtension = fileExtension
    }

    /// The same type with another extension.
    init(_ type: OfferedType, fileExtension: String) {
        self.init(type.identifier, type.kind, mimeType: type.mimeType, fileExtension: fileExtension)
    }

    var mediaType: MediaType? { mimeType.flatMap { try? MediaType($0) } }

    private var isFile: Bool {
        // A Live Photo is offered first as a bundle of a picture and a movie, and then as a picture.
        kind != .unusable && !identifier.hasPrefix("com.apple.live-photo")
            && !identifier.hasPrefix("com.apple.private.live-photo")
    }

    /// Chooses the type to load.
    ///
    /// - Parameters:
    ///   - types: The types in the item's order. The type with the most detail is first.
    ///   - preferred: The media types that the server accepts, most preferred first.
    /// - Returns: The first preferred type that is offered; otherwise the first image or movie; otherwise the first
    ///   other file; `nil` if there is no file.
    static func best(of types: [OfferedType], preferring preferred: [MediaType]) -> OfferedType? {
        let files = types.filter(\.isFile)
        for mediaType in preferred {
            if let match = files.first(where: { $0.mediaType == mediaType }) { return match }
        }
        return files.first { $0.kind == .image || $0.kind == .movie } ?? files.first
    }
}
