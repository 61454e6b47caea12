/// Which file of a photo or video in the library is sent.
public enum PhotoComponent: String, Sendable, Hashable, Codable {
    /// The photo or the video itself; the still picture of a Live Photo.
    case primary
    /// The video of a Live Photo.
    case pairedVideo
    /// The second picture of a photo that was taken in two formats: the RAW file that belongs to a JPEG or HEIC.
    case alternatePhoto
}
