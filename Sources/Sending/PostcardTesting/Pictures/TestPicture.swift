public import PostcardClient
public import PostcardFoundation

/// A tiny picture or film for tests, with metadata that is known.
///
/// ```swift
/// let photo = try TestPicture.located.file(in: folder)
/// form.append(fileAt: photo, named: "petImage")
/// …
/// sent.expectFile("petImage", type: .jpeg, hasLocation: false)
/// ```
///
/// Each decodes, apart from ``broken``; all together have less than 10 kB.
public struct TestPicture: Sendable {
    /// A filename with the extension of its type, such as `located.jpg`.
    public let filename: String

    /// The bytes.
    public let data: Data

    /// The type that the bytes show.
    public let contentType: MediaType

    /// The number of pixels in each row, as stored.
    public let width: Int

    /// The number of rows, as stored.
    public let height: Int

    /// The Exif orientation: 1 is upright, 6 is to be turned right by 90° (Exif 2.32, tag 274).
    public let orientation: Int

    /// Whether it has the place where it was taken: 33.45° north, 126.57° east.
    public let hasLocation: Bool

    private init(
        _ filename: String, _ data: Data, _ contentType: MediaType, _ width: Int, _ height: Int, orientation: Int = 1,
        hasLocation: Bool = false
    ) {
        self.filename = filename
        self.data = data
        self.contentType = contentType
        self.width = width
        self.height = height
        self.orientation = orientation
        self.hasLocation = hasLocation
    }

    /// A JPEG without metadata.
    public static let landscape = TestPicture("landscape.jpg", Bytes.landscape, .jpeg, 48, 32)

    /// A JPEG that is stored lying on its side, as phones store portraits.
    public static let portrait = TestPicture("portrait.jpg", Bytes.portrait, .jpeg, 48, 32, orientation: 6)

    /// A JPEG with a position.
    public static let located = TestPicture("located.jpg", Bytes.located, .jpeg, 48, 32, hasLocation: true)

    /// A HEIC with a position.
    public static let heic = TestPicture("located.heic", Bytes.heic, .heic, 64, 64, hasLocation: true)

    /// The picture of a Live Photo, a JPEG. Apple's data in it names ``livePhotoMovie``.
    public static let livePhoto = TestPicture("live.jpg", Bytes.livePhoto, .jpeg, 48, 32)

    /// The film of ``livePhoto``.
    public static let livePhotoMovie = TestPicture("live.mov", Bytes.livePhotoMovie, .quickTime, 16, 16)

    /// A PNG with transparency.
    public static let transparent = TestPicture("stamp.png", Bytes.transparent, .png, 32, 32)

    /// A GIF of two pictures that follow each other.
    public static let animated = TestPicture("waves.gif", Bytes.animated, .gif, 16, 8)

    /// A JPEG with a film behind its end, as Android's cameras make them.
    public static let motionPhoto = TestPicture("motion.jpg", Bytes.motionPhoto, .jpeg, 48, 32)

    /// A JPEG that is cut off in the middle, as by a download that broke.
    public static let broken = TestPicture("broken.jpg", Bytes.broken, .jpeg, 48, 32)

    /// A QuickTime film of one second with a position.
    public static let film = TestPicture("film.mov", Bytes.film, .quickTime, 16, 16, hasLocation: true)

    /// All of them.
    public static let all = [
        landscape, portrait, located, heic, livePhoto, livePhotoMovie, transparent, animated, motionPhoto, broken, film,
    ]

    /// Writes the picture into a folder, as ``filename``.
    ///
    /// - Parameter folder: A folder that exists.
    /// - Returns: The file.
    /// - Throws: Errors of Foundation, if the file cannot be written.
    public func file(in folder: URL) throws -> URL {
        let file = folder.appending(path: filename)
        try data.write(to: file)
        return file
    }
}
