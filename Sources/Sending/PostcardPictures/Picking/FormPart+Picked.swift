#if canImport(Darwin)
public import Foundation
public import PostcardForm

/// A file outside the app, such as a file in iCloud Drive.
struct PickedDocument: PickedItem {
    let url: URL

    init(_ url: URL) {
        self.url = url
    }

    #if os(macOS)
    private static let creation: URL.BookmarkCreationOptions = [.withSecurityScope, .securityScopeAllowOnlyReadAccess]
    private static let resolution: URL.BookmarkResolutionOptions = .withSecurityScope
    #else
    // The bookmark of a URL from a picker keeps the URL's security scope: developer.apple.com/forums/thread/793561.
    private static let creation: URL.BookmarkCreationOptions = []
    private static let resolution: URL.BookmarkResolutionOptions = []
    #endif

    /// Finds the file of a bookmark. Returns `nil` if the file is gone.
    init?(bookmark: Data) {
        var isStale = false
        // A stale bookmark still finds the file. It need not be renewed, because the file is copied only once.
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
    /// Makes a part from a file that the user chose outside the app, such as a URL from SwiftUI's `fileImporter`. When
    /// the form is sent or enqueued, the file is copied, and first downloaded if it is in iCloud.
    ///
    /// - Parameters:
    ///   - url: The file. A file of the app itself needs no copy: append it with `form.append(fileAt:named:)`.
    ///   - name: The name of the form's field.
    ///   - metadata: The metadata to remove from a picture or a video while it is sent. Defaults to the location and
    ///     data about the owner. Other files are sent unchanged.
    ///   - preparation: Changes the part before the form is sent. Defaults to no preparation.
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

/// A picked photo or video of the photo library.
struct PickedAsset: PickedItem {
    private let identifier: String
    private let version: PhotoVersion
    private let component: PhotoComponent

    init(_ identifier: String, _ version: PhotoVersion, _ component: PhotoComponent) {
        self.identifier = identifier
        self.version = version
        self.component = component
    }

    // The app needs permission to read the library; without it, no item is found. With permission for selected photos,
    // only these are found. Picking a photo does not add it to them:
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
    /// Makes a part from a photo or video of the photo library. When the form is sent or enqueued, the file is copied,
    /// and first downloaded if it is only in iCloud. See `PHAsset.formPart(named:)`.
    ///
    /// - Parameters:
    ///   - asset: The photo or video.
    ///   - name: The name of the form's field.
    ///   - version: The original, or the current version with all edits. Defaults to the original.
    ///   - component: The file of the item to send. Defaults to the photo or video itself.
    ///   - metadata: The metadata to remove while the file is sent. Defaults to the location and data about the owner.
    ///   - preparation: Changes the part before the form is sent. Defaults to no preparation.
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
    // `NSItemProvider` is not declared Sendable, but only one task at a time loads the item.
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
    /// Makes a part from the item of an item provider, for drag and drop, paste and share extensions. The item is
    /// loaded when the form is sent or enqueued. See `NSItemProvider.formPart(named:)`.
    ///
    /// - Parameters:
    ///   - provider: The item provider. A later run of the app cannot find its item again.
    ///   - name: The name of the form's field.
    ///   - preferred: The media types that the server accepts, most preferred first. Defaults to none.
    ///   - metadata: The metadata to remove from pictures and videos. Defaults to the location and data about the
    ///     owner.
    ///   - preparation: Changes the part before the form is sent. Defaults to no preparation.
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
    /// Makes a part from an item that was picked in a `PHPickerViewController`. The item is loaded when the form is
    /// sent or enqueued. See `PHPickerResult.formPart(named:)`.
    ///
    /// - Parameters:
    ///   - result: The picked item.
    ///   - name: The name of the form's field.
    ///   - preferred: The media types that the server accepts, most preferred first. Defaults to none.
    ///   - metadata: The metadata to remove while the file is sent. Defaults to the location and data about the owner.
    ///   - preparation: Changes the part before the form is sent. Defaults to no preparation.
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

/// A picked item of SwiftUI's photo picker.
struct PickedPhoto: PickedItem {
    let item: PhotosPickerItem

    // The picker gives its items identifiers only if it was made with a photo library.
    var record: Data? { item.itemIdentifier.flatMap { RecordedItem.photo($0, .current, .primary).data } }

    func copy(to folder: URL) async throws -> PickedCopy {
        try await PickedCopy { try await item.formPart(named: "", in: folder) }
    }
}

extension FormPart {
    /// Makes a part from an item that was picked in SwiftUI's photo picker. The item is loaded when the form is sent or
    /// enqueued. See `PhotosPickerItem.formPart(named:)`.
    ///
    /// - Parameters:
    ///   - item: The picked item.
    ///   - name: The name of the form's field.
    ///   - metadata: The metadata to remove while the file is sent. Defaults to the location and data about the owner.
    ///   - preparation: Changes the part before it is sent, such as `PictureFitting.serverLimit`. Defaults to no
    ///     preparation.
    public init(
        picked item: PhotosPickerItem, named name: String, metadata: MetadataPolicy = .withoutLocation,
        preparation: (any FormPreparation)? = nil
    ) {
        self.init(picked: PickedPhoto(item: item), named: name, metadata: metadata, preparation: preparation)
    }
}
#endif
