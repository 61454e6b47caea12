/// Which version of a photo or video in the library is sent.
public enum PhotoVersion: Sendable, Hashable {
    /// As it was taken or imported, byte for byte, without later edits.
    case original
    /// As the library shows it, with all edits. An item that was never edited is its original.
    case current
}

/// Which file of a photo or video in the library is sent.
public enum PhotoComponent: Sendable, Hashable {
    /// The photo or the video itself; the still picture of a Live Photo.
    case primary
    /// The video of a Live Photo.
    case pairedVideo
    /// The second picture of a photo that was taken in two formats: the RAW file beside a JPEG or HEIC.
    case alternatePhoto
}

/// What a resource of an asset in the photo library holds.
enum PhotoResource: Sendable, Hashable {
    case photo, video, audio, alternatePhoto, fullSizePhoto, fullSizeVideo, pairedVideo, fullSizePairedVideo
    /// What only editors need, such as the adjustments themselves, and what this module does not know.
    case other

    /// The place of the resource to send in an asset's list of resources.
    ///
    /// - Parameters:
    ///   - component: The file that is wanted.
    ///   - version: The version that is wanted.
    ///   - resources: The asset's resources.
    ///   - isVideo: Whether the asset is a video.
    /// - Returns: `nil` if the asset has no such file. An edited version is never used in place of a missing original.
    static func index(
        of component: PhotoComponent, _ version: PhotoVersion, in resources: [PhotoResource], isVideo: Bool
    ) -> Int? {
        let (original, edited): (PhotoResource, PhotoResource?) =
            switch component {
            case .primary: isVideo ? (.video, .fullSizeVideo) : (.photo, .fullSizePhoto)
            case .pairedVideo: (.pairedVideo, .fullSizePairedVideo)
            case .alternatePhoto: (.alternatePhoto, nil)
            }
        if version == .current, let edited, let index = resources.firstIndex(of: edited) { return index }
        return resources.firstIndex(of: original)
    }
}
