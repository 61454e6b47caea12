#if canImport(Darwin)
public import Foundation
public import PostcardForm

/// A file outside the app, such as one of iCloud Drive.
struct PickedDocument: PickedItem {
    let url: URL

    init(_ url: URL) {
        self.url = url
    }

    #if os(macOS)
    private static let creation: URL.BookmarkCreationOptions = [.withSecurityScope, .securityScopeAllowOnlyReadAccess]
    private static let resolution: URL.BookmarkResolutionOptions = .withSecurityScope
    #else
    // The bookmark of a URL that a picker returned keeps its scope: developer.apple.com/forums/thread/793561.
    private static let creation: URL.BookmarkCreationOptions = []
    private static let resolution: URL.BookmarkResolutionOptions = []
    #endif

    /// The file of a bookmark; `nil` if it is gone.
    init?(bookmark: Data) {
        var isStale = false
        // A bookmark that is stale still names the file, which is copied once.
        let found = try? URL(
            resolvingBookmarkData: bookmark, options: Self.resolution, relativeTo: nil, bookmarkDataIsStale: &isStale)
        guard let found else { return nil }
        url = found
    }

    var record: Data? {
        let isScoped = url.startAccessingSecurityScopedResource()
        defer { if isScoped { url.stopAccessingSecurityScopedResource() } }
        let bookmark = try? url.bookmarkData(
            options: Self.creation, includingResourceValuesForKeys: nil, relativeTo: nil)
        return bookmark.flatMap { RecordedItem.file($0).data }
    }

    func copy(to folder: URL) async throws -> PickedCopy {
        try await PickedCopy { try await FormPart(importing: url, named: "", in: folder) }
    }
}

extension FormPart {
    /// Makes a file that the user chose outside the app a part of a form, such as a URL from SwiftUI's `fileImporter`.
    /// The file is copied, and downloaded if it is in iCloud, when the form is sent or enqueued.
    ///
    /// - Parameters:
    ///   - url: The file. A file of the app's own needs no copy: append it with `form.append(fileAt:named:)`.
    ///   - name: The name of the form's field.
    ///   - metadata: What is removed from a picture or a video while it is sent. Defaults to where it was taken and
    ///     whose it is; other files are sent as they are.
    ///   - preparation: What changes the part before the form is sent. Defaults to nothing.
    public init(
        picked url: URL, named name: String, metadata: MetadataPolicy = .picturesWithoutLocation,
        preparation: (any FormPreparation)? = nil
    ) {
        self.init(picked: PickedDocument(url), named: name, metadata: metadata, preparation: preparation)
    }
}
#endif

#if canImport(Photos) && !os(watchOS)
public import Photos

/// A photo or video of the library.
struct PickedAsset: PickedItem {
    private let identifier: String
    private let version: PhotoVersion
    private let component: PhotoComponent

    init(_ identifier: String, _ version: PhotoVersion, _ component: PhotoComponent) {
        self.identifier = identifier
        self.version = version
        self.component = component
    }

    // An identifier is no permission: without one for the library, nothing is fetched, and with one for some photos
    // only those are, which the picker does not add to:
    // developer.apple.com/documentation/photokit/selecting-photos-and-videos-in-ios
    private var asset: PHAsset? {
        PHAsset.fetchAssets(withLocalIdentifiers: [identifier], options: nil).firstObject
    }

    var exists: Bool { asset != nil }

    var record: Data? { RecordedItem.photo(identifier, version, component).data }

    @concurrent func copy(to folder: URL) async throws -> PickedCopy {
        guard let asset else { throw PictureError.noSuchVersion(version, component) }
        return try await PickedCopy {
            try await asset.formPart(named: "", version: version, component: component, in: folder)
        }
    }
}

extension FormPart {
    /// Makes a photo or video of the photo library a part of a form. It is copied, and downloaded if it is in iCloud,
    /// when the form is sent or enqueued. See `PHAsset.formPart(named:)`.
    ///
    /// - Parameters:
    ///   - asset: The photo or video.
    ///   - name: The name of the form's field.
    ///   - version: The original, or the current version with all edits. Defaults to the original.
    ///   - component: Which of the item's files. Defaults to the photo or video itself.
    ///   - metadata: What is removed while the file is sent. Defaults to where it was taken and whose it is.
    ///   - preparation: What changes the part before the form is sent. Defaults to nothing.
    public init(
        picked asset: PHAsset, named name: String, version: PhotoVersion = .original,
        component: PhotoComponent = .primary, metadata: MetadataPolicy = .withoutLocation,
        preparation: (any FormPreparation)? = nil
    ) {
        self.init(
            picked: PickedAsset(asset.localIdentifier, version, component), named: name, metadata: metadata,
            preparation: preparation)
    }
}
#endif

#if canImport(UniformTypeIdentifiers)
/// An item of a picker, a drop, a paste or a share.
struct PickedProvider: PickedItem {
    // The class is not declared Sendable, and the item is loaded by one task at a time.
    nonisolated(unsafe) private let provider: NSItemProvider
    private let preferred: [MediaType]
    let record: Data?

    init(_ provider: NSItemProvider, preferring preferred: [MediaType], assetIdentifier: String? = nil) {
        self.provider = provider
        self.preferred = preferred
        record = assetIdentifier.flatMap { RecordedItem.photo($0, .current, .primary).data }
    }

    func copy(to folder: URL) async throws -> PickedCopy {
        try await PickedCopy { try await provider.formPart(named: "", preferring: preferred, in: folder) }
    }
}

extension FormPart {
    /// Makes what an item provider offers a part of a form, for drag and drop, paste and share extensions. It is loaded
    /// when the form is sent or enqueued. See `NSItemProvider.formPart(named:)`.
    ///
    /// - Parameters:
    ///   - provider: The item provider. A later run of the app cannot find it again.
    ///   - name: The name of the form's field.
    ///   - preferred: The media types that the server accepts, most preferred first. Defaults to none.
    ///   - metadata: What is removed from a picture or a video. Defaults to where it was taken and whose it is.
    ///   - preparation: What changes the part before the form is sent. Defaults to nothing.
    public init(
        picked provider: NSItemProvider, named name: String, preferring preferred: [MediaType] = [],
        metadata: MetadataPolicy = .picturesWithoutLocation, preparation: (any FormPreparation)? = nil
    ) {
        self.init(
            picked: PickedProvider(provider, preferring: preferred), named: name, metadata: metadata,
            preparation: preparation)
    }
}
#endif

#if canImport(PhotosUI) && !os(tvOS) && !os(watchOS)
public import PhotosUI

extension FormPart {
    /// Makes what was picked in a `PHPickerViewController` a part of a form. It is loaded when the form is sent or
    /// enqueued. See `PHPickerResult.formPart(named:)`.
    ///
    /// - Parameters:
    ///   - result: What was picked.
    ///   - name: The name of the form's field.
    ///   - preferred: The media types that the server accepts, most preferred first. Defaults to none.
    ///   - metadata: What is removed while the file is sent. Defaults to where it was taken and whose it is.
    ///   - preparation: What changes the part before the form is sent. Defaults to nothing.
    public init(
        picked result: PHPickerResult, named name: String, preferring preferred: [MediaType] = [],
        metadata: MetadataPolicy = .withoutLocation, preparation: (any FormPreparation)? = nil
    ) {
        self.init(
            picked: PickedProvider(
                result.itemProvider, preferring: preferred, assetIdentifier: result.assetIdentifier),
            named: name, metadata: metadata, preparation: preparation)
    }
}
#endif

#if canImport(PhotosUI) && canImport(SwiftUI) && !os(tvOS)
public import PhotosUI
public import SwiftUI

/// An item of SwiftUI's photo picker.
struct PickedPhoto: PickedItem {
    let item: PhotosPickerItem

    // The picker names its items only if it was made with a photo library.
    var record: Data? { item.itemIdentifier.flatMap { RecordedItem.photo($0, .current, .primary).data } }

    func copy(to folder: URL) async throws -> PickedCopy {
        try await PickedCopy { try await item.formPart(named: "", in: folder) }
    }
}

extension FormPart {
    /// Makes what was picked in SwiftUI's photo picker a part of a form. It is loaded when the form is sent or
    /// enqueued. See `PhotosPickerItem.formPart(named:)`.
    ///
    /// - Parameters:
    ///   - item: What was picked.
    ///   - name: The name of the form's field.
    ///   - metadata: What is removed while the file is sent. Defaults to where it was taken and whose it is.
    ///   - preparation: What changes the part before the form is sent, such as `PictureFitting.serverLimit`. Defaults
    ///     to nothing.
    public init(
        picked item: PhotosPickerItem, named name: String, metadata: MetadataPolicy = .withoutLocation,
        preparation: (any FormPreparation)? = nil
    ) {
        self.init(picked: PickedPhoto(item: item), named: name, metadata: metadata, preparation: preparation)
    }
}
#endif
