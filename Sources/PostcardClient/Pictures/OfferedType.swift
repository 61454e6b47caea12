import PostcardForm

/// One of the types that an item is offered in, such as `public.heic`, with what is needed to choose among them.
struct OfferedType: Hashable, Sendable {
    /// What the bytes of a type are good for.
    enum Kind: Sendable {
        case image
        case movie
        /// A file of any other type.
        case data
        /// Not one file: a folder, a package, a link.
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
        // A Live Photo is offered as a bundle of a picture and a movie before its picture is.
        kind != .unusable && !identifier.hasPrefix("com.apple.live-photo")
            && !identifier.hasPrefix("com.apple.private.live-photo")
    }

    /// The type to load.
    ///
    /// - Parameters:
    ///   - types: The types in the order of the item, which begins with the one that keeps most.
    ///   - preferred: The media types that the server accepts, most preferred first.
    /// - Returns: The first preferred type that is offered, else the first image or movie, else the first other file;
    ///   `nil` if there is no file.
    static func best(of types: [OfferedType], preferring preferred: [MediaType]) -> OfferedType? {
        let files = types.filter(\.isFile)
        for mediaType in preferred {
            if let match = files.first(where: { $0.mediaType == mediaType }) { return match }
        }
        return files.first { $0.kind == .image || $0.kind == .movie } ?? files.first
    }
}
