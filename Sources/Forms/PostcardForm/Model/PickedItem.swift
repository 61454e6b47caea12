public import PostcardFoundation

/// A file outside the app that the user has picked, such as a photo that may still be in iCloud. It is copied when its
/// form is sent or enqueued, not when it is picked.
///
/// `PostcardPictures` makes such items from the results of Apple's pickers:
///
/// ```swift
/// for item in picked { form.append(FormPart(picked: item, named: "petImage")) }
/// try await queue.enqueue(form, to: url)
/// ```
///
/// A queue records the picked items before it copies them. If the app ends before all items are copied, the next
/// run copies the rest.
public protocol PickedItem: Sendable {
    /// Data that lets a ``PickedItemFinder`` find the item in a later run of the app; `nil` if the item cannot be found
    /// again.
    var record: Data? { get }

    /// Copies the item, and downloads it first if it is not on the device.
    ///
    /// - Parameter folder: The folder for the copy. The caller owns the folder.
    /// - Throws: An error that fails the upload, unchanged. `CancellationError` if the task is cancelled or the system
    ///   suspends the app.
    func copy(to folder: URL) async throws -> PickedCopy
}

/// The copy of a picked item.
public struct PickedCopy: Sendable {
    /// The file of the copy, directly in the folder that was passed to ``PickedItem/copy(to:)``.
    public let file: URL

    /// The filename to send if the form sets none.
    public let filename: String

    /// The media type if the form sets none; `nil` to detect it from the first bytes.
    public let contentType: MediaType?

    /// Describes a copy.
    public init(_ file: URL, filename: String, contentType: MediaType? = nil) {
        self.file = file
        self.filename = filename
        self.contentType = contentType
    }
}

/// Finds items that an earlier run of the app has not copied.
///
/// `PostcardPictures` has a finder for photos and files, `PickedPhotosAndFiles`.
public protocol PickedItemFinder: Sendable {
    /// Finds an item.
    ///
    /// - Parameter record: The recorded data of the item: ``PickedItem/record``.
    /// - Returns: `nil` if the item no longer exists, or if the app may not read it.
    func item(recordedAs record: Data) async throws -> (any PickedItem)?

    /// Makes a part's preparation again.
    ///
    /// - Parameter record: The recorded data of the preparation: ``FormPreparation/record``.
    /// - Returns: `nil` if the data belongs to no known preparation.
    func preparation(recordedAs record: Data) -> (any FormPreparation)?
}

extension FormPart {
    /// Makes a part of a picked item.
    ///
    /// - Parameters:
    ///   - item: The item. It is copied when the form is sent or enqueued.
    ///   - name: The name of the form's field.
    ///   - filename: The name of the file. Defaults to the filename of the item.
    ///   - contentType: The media type. Defaults to the type of the item, or else to the detected type.
    ///   - metadata: The metadata to remove from a picture or video. Defaults to its location and owner.
    ///   - preparation: The change to the part before the form is sent. Defaults to none.
    public init(
        picked item: any PickedItem, named name: String, filename: String? = nil, contentType: MediaType? = nil,
        metadata: MetadataPolicy = .picturesWithoutLocation, preparation: (any FormPreparation)? = nil
    ) {
        self.init(
            name: name, filename: filename, contentType: contentType, content: .picked(item), metadata: metadata,
            preparation: preparation)
    }

    /// Replaces a picked item with its copy.
    package mutating func take(_ copy: PickedCopy) {
        content = .file(copy.file)
        filename = filename ?? copy.filename
        contentType = contentType ?? copy.contentType
    }
}

/// A temporary file, which is removed when the last part or layout that uses it is released.
package final class OwnedFile: Sendable {
    private let url: URL

    package init(_ url: URL) {
        self.url = url
    }

    deinit {
        // The file is removed in a task, so that the actor that releases this object does not wait.
        Task.detached(priority: .utility) { [url] in try? FileManager.default.removeItem(at: url) }
    }
}
