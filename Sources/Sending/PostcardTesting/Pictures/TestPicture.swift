public import PostcardClient
public import PostcardFoundation

/// A tiny picture or film for tests, with known metadata.
///
/// ```swift
/// let photo = try TestPicture.located.file(in: folder)
/// form.append(fileAt: photo, named: "petImage")
/// …
/// sent.expectFile("petImage", type: .jpeg, hasLocation: false)
/// ```
///
/// Every picture except ``broken`` can be decoded. Together they have less than 10 kB.
public struct TestPicture: Sendable {
    /// A filename with the extension of its type, such as `located.jpg`.
    public let filename: String

    /// The bytes of the picture or film.
    public let data: Data

    /// The media type according to the bytes.
    public let contentType: MediaType

    /// The number of pixels in each row, as stored.
    public let width: Int

    /// The number of rows, as stored.
    public let height: Int

    /// The Exif orientation: 1 is upright, 6 must be rotated right by 90° (Exif 2.32, tag 274).
    public let orientation: Int

    /// Whether the metadata has a location: 33.45° north, 126.57° east.
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

    /// A JPEG that is stored on its side, as phones store portraits.
    public static let portrait = TestPicture("portrait.jpg", Bytes.portrait, .jpeg, 48, 32, orientation: 6)

    /// A JPEG with a location.
    public static let located = TestPicture("located.jpg", Bytes.located, .jpeg, 48, 32, hasLocation: true)

    /// A HEIC with a location.
    public static let heic = TestPicture("located.heic", Bytes.heic, .heic, 64, 64, hasLocation: true)

    /// The still picture of a Live Photo, a JPEG. Apple's metadata in it refers to ``livePhotoMovie``.
    public static let livePhoto = TestPicture("live.jpg", Bytes.livePhoto, .jpeg, 48, 32)

    /// The film of ``livePhoto``.
    public static let livePhotoMovie = TestPicture("live.mov", Bytes.livePhotoMovie, .quickTime, 16, 16)

    /// A PNG with transparency.
    public static let transparent = TestPicture("stamp.png", Bytes.transparent, .png, 32, 32)

    /// An animated GIF of two pictures.
    public static let animated = TestPicture("waves.gif", Bytes.animated, .gif, 16, 8)

    /// A JPEG with a film in the same file, as Android's cameras make it.
    public static let motionPhoto = TestPicture("motion.jpg", Bytes.motionPhoto, .jpeg, 48, 32)

    /// A JPEG that is cut off in the middle, as after an interrupted download.
    public static let broken = TestPicture("broken.jpg", Bytes.broken, .jpeg, 48, 32)

    /// A QuickTime film of one second with a location.
    public static let film = TestPicture("film.mov", Bytes.film, .quickTime, 16, 16, hasLocation: true)

    /// All pictures and films.
    public static let all = [
        landscape, portrait, located, heic, livePhoto, livePhotoMovie, transparent, animated, motionPhoto, broken, film,
    ]

    /// Writes the picture into a folder as ``filename``, and returns the URL of the file.
    ///
    /// - Parameter folder: The folder, which must exist.
    /// - Throws: Errors of Foundation, if the file cannot be written.
    public func file(in folder: URL) throws -> URL {
        let file = folder.appending(path: filename)
        try data.write(to: file)
        return file
    }
}
