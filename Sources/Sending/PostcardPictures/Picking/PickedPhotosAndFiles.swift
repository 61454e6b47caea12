public import PostcardForm
public import PostcardFoundation

/// Finds photos and files that were picked in an earlier run of the app, for a queue.
///
/// ```swift
/// let queue = UploadQueue(directory: folder, session: session, finding: PickedPhotosAndFiles())
/// ```
///
/// A photo is found if the picker gave it an identifier and the app may read it. So make the picker with a photo
/// library (`PhotosPicker(…, photoLibrary: .shared())`, `PHPickerConfiguration(photoLibrary: .shared())`), and ask for
/// permission to read the library. The photo is then sent in its current version. A file is found by its bookmark,
/// without a permission.
public struct PickedPhotosAndFiles: PickedItemFinder {
    /// Makes a finder.
    public init() {}

    public func item(recordedAs record: Data) async throws -> (any PickedItem)? {
        switch RecordedItem(record) {
        case .photo(let identifier, let version, let component):
            #if canImport(Photos) && !os(watchOS)
            let asset = PickedAsset(identifier, version, component)
            return asset.exists ? asset : nil
            #else
            return nil
            #endif
        case .file(let bookmark):
            #if canImport(Darwin)
            return PickedDocument(bookmark: bookmark)
            #else
            return nil
            #endif
        case nil: return nil
        }
    }

    public func preparation(recordedAs record: Data) -> (any FormPreparation)? { PictureFitting(record: record) }
}

/// A record of a picked item, by which a later run of the app finds the item again.
enum RecordedItem: Codable, Equatable {
    /// A photo or video of the photo library, with its local identifier.
    case photo(String, PhotoVersion, PhotoComponent)
    /// A file, with its bookmark.
    case file(Data)

    init?(_ record: Data) {
        guard let item = try? JSONDecoder().decode(Self.self, from: record) else { return nil }
        self = item
    }

    var data: Data? { try? JSONEncoder().encode(self) }
}

extension PickedCopy {
    /// Loads an item as a part, and makes the copy of the item from the part's file.
    ///
    /// - Parameter load: Loads the item and makes the part.
    init(of load: () async throws -> FormPart) async throws {
        let part: FormPart
        do {
            part = try await load()
        } catch let error as PictureError where error.code == .suspended {
            throw CancellationError()
        }
        guard case .file(let file) = part.content else { throw PictureError.noFile(offered: []) }
        self.init(file, filename: part.filename ?? file.lastPathComponent, contentType: part.contentType)
    }
}
