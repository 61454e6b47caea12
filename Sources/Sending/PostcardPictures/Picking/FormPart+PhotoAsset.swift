/// The files of a photo or video in the library.
public enum PhotoComponent: String, Sendable, Hashable, Codable {
    /// The photo or the video itself. For a Live Photo, it is the still picture.
    case primary
    /// The video of a Live Photo.
    case pairedVideo
    /// The RAW file of a photo that was taken in two formats, besides its JPEG or HEIC.
    case alternatePhoto
}

/// The versions of a photo or video in the library.
public enum PhotoVersion: String, Sendable, Hashable, Codable {
    /// The item as it was taken or imported, byte for byte, without edits.
    case original
    /// The item with all edits, as the library shows it. For an item without edits, it is the original.
    case current
}

/// The kind of a resource of an asset in the photo library.
enum PhotoResource: Sendable, Hashable {
    case photo, video, audio, alternatePhoto, fullSizePhoto, fullSizeVideo, pairedVideo, fullSizePairedVideo
    /// A resource that only editors need, such as the adjustments, or that this module does not know.
    case other

    /// The index of the resource to send in an asset's list of resources.
    ///
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

#if canImport(Photos) && !os(watchOS)
public import Foundation
public import Photos
public import PostcardForm
import UniformTypeIdentifiers

extension PHAsset {
    /// Makes a part from a photo or video of the photo library, without the location. The file is otherwise unchanged.
    /// A file that is only in iCloud is downloaded first.
    ///
    /// ```swift
    /// let loading = Progress(totalUnitCount: 1)
    /// form.append(try await asset.formPart(named: "original", reportingTo: loading))
    /// ```
    ///
    /// The app needs the user's permission to read the library. If the user chooses the photos, use a picker and
    /// `PHPickerResult.formPart` instead, which need no permission.
    ///
    /// The part has a copy of the file, which is removed when the last copy of the part is released. For a Live Photo,
    /// the file is the still picture; for its video, use ``PhotoComponent/pairedVideo``. The part's filename is that of
    /// the original, with the extension of the file that is sent.
    ///
    /// - Parameters:
    ///   - name: The name of the form's field.
    ///   - version: The original, or the current version with all edits. Defaults to the original.
    ///   - component: The file of the item to send. Defaults to the photo or video itself.
    ///   - downloads: Whether to download a file that is only in iCloud. Defaults to `true`.
    ///   - metadata: The metadata to remove while the file is sent. Defaults to the location and data about the owner.
    ///   - folder: A folder for the copy, which the caller must then remove. Defaults to `FormPart.temporaryFolder`.
    ///   - progress: A progress with one unit for each item, which follows the download from iCloud. Cancelling the
    ///     progress cancels the download. Defaults to none.
    /// - Throws: ``PictureError`` with code ``PictureError/Code/noSuchVersion`` if the item has no such file, and
    ///   ``PictureError/Code/notLoadable`` if the file cannot be read, downloaded or copied. `CancellationError` if the
    ///   task or `progress` is cancelled.
    @concurrent
    public func formPart(
        named name: String, version: PhotoVersion = .original, component: PhotoComponent = .primary,
        downloading downloads: Bool = true, metadata: MetadataPolicy = .withoutLocation, in folder: URL? = nil,
        reportingTo progress: Progress? = nil
    ) async throws -> FormPart {
        let resources = PHAssetResource.assetResources(for: self)
        let kinds = resources.map { PhotoResource($0.type) }
        let isVideo = mediaType == .video
        guard let index = PhotoResource.index(of: component, version, in: kinds, isVideo: isVideo) else {
            throw PictureError.noSuchVersion(version, component)
        }
        let original = PhotoResource.index(of: .primary, .original, in: kinds, isVideo: isVideo) ?? index
        let resource = resources[index]
        let pictureName = PictureName(
            original: resources[original].originalFilename, file: resource.originalFilename,
            type: OfferedType(resource.uniformTypeIdentifier))
        let file: ReceivedFile
        do {
            file = try await ReceivedFile.create(in: folder, for: pictureName.filename)
        } catch {
            throw PictureError.notLoadable("The photo library's file", underlyingError: error)
        }
        try await resource.write(to: file, downloading: downloads, reportingTo: progress)
        return FormPart(
            name: name, filename: pictureName.filename, contentType: pictureName.contentType, content: .file(file.url),
            metadata: metadata
        ).owningFile(unlessIn: folder)
    }
}

extension PHAssetResource {
    /// Writes the resource to a file. Removes the file if writing fails.
    ///
    /// Unlike `writeData(for:toFile:options:)`, this method can be cancelled, and with it the download of a long video.
    fileprivate func write(
        to file: ReceivedFile, downloading downloads: Bool, reportingTo parent: Progress?
    ) async throws {
        let progress = Progress(totalUnitCount: 1000)
        let options = PHAssetResourceRequestOptions()
        options.isNetworkAccessAllowed = downloads
        options.progressHandler = { @Sendable in progress.completedUnitCount = Int64($0 * 1000) }

        let result = CallbackResult<Void>()
        progress.cancellationHandler = { result.abandon(throwing: CancellationError()) }
        defer { progress.cancellationHandler = nil }
        parent?.addChild(progress, withPendingUnitCount: 1)
        do {
            try await result.value {
                let request = PHAssetResourceManager.default().requestData(for: self, options: options) {
                    @Sendable chunk in
                    do { try file.append(chunk) } catch { result.abandon(throwing: error) }
                } completionHandler: { @Sendable error in
                    result.finish(Result { if let error { throw error } else { try file.finish() } })
                }
                return { PHAssetResourceManager.default().cancelDataRequest(request) }
            }
        } catch is CancellationError {
            await file.discard()
            throw CancellationError()
        } catch let error as PictureError {
            await file.discard()
            throw error
        } catch {
            await file.discard()
            throw PictureError.notLoadable("The photo library's file", underlyingError: error)
        }
        progress.completedUnitCount = 1000
    }
}

extension PhotoResource {
    fileprivate init(_ type: PHAssetResourceType) {
        self =
            switch type {
            case .photo: .photo
            case .video: .video
            case .audio: .audio
            case .alternatePhoto: .alternatePhoto
            case .fullSizePhoto: .fullSizePhoto
            case .fullSizeVideo: .fullSizeVideo
            case .pairedVideo: .pairedVideo
            case .fullSizePairedVideo: .fullSizePairedVideo
            default: .other
            }
    }
}
#endif
