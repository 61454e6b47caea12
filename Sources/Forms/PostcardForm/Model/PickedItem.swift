public import PostcardFoundation

/// A file outside the app that the user has picked, such as a photo that may still be in iCloud. It is copied when its
/// form is sent or enqueued, not when it is picked.
///
/// `PostcardPictures` makes them of what Apple's pickers return:
///
/// ```swift
/// for item in picked { form.append(FormPart(picked: item, named: "petImage")) }
/// try await queue.enqueue(form, to: url)
/// ```
///
/// A queue records what was picked before it copies anything. If the app ends meanwhile, the next run goes on.
public protocol PickedItem: Sendable {
    /// By what a ``PickedItemFinder`` finds the item again in a later run of the app. `nil` if nothing finds it.
    var record: Data? { get }

    /// Copies the item, and downloads it first if it is not on the device.
    ///
    /// - Parameter folder: The folder for the copy, which belongs to the caller.
    /// - Throws: An error that fails the upload, unchanged. `CancellationError` if the task is cancelled, or if the
    ///   system suspends the app.
    func copy(to folder: URL) async throws -> PickedCopy
}

/// The copy of an item that was picked.
public struct PickedCopy: Sendable {
    /// The copy, directly in the folder that was given.
    public let file: URL

    /// The filename that is sent, if the form's author gave none.
    public let filename: String

    /// The media type, if the form's author gave none. `nil` means that the first bytes decide.
    public let contentType: MediaType?

    /// Describes a copy.
    public init(_ file: URL, filename: String, contentType: MediaType? = nil) {
        self.file = file
        self.filename = filename
        self.contentType = contentType
    }
}

/// Finds what was picked in an earlier run of the app, whose copy is still missing.
///
/// `PostcardPictures` has one for photos and files, `PickedPhotosAndFiles`.
public protocol PickedItemFinder: Sendable {
    /// Finds an item again.
    ///
    /// - Parameter record: What was recorded of it: ``PickedItem/record``.
    /// - Returns: `nil` if the item no longer exists, or if the app may not read it.
    func item(recordedAs record: Data) async throws -> (any PickedItem)?

    /// Makes a part's preparation again.
    ///
    /// - Parameter record: What was recorded of it: ``FormPreparation/record``.
    /// - Returns: `nil` if no preparation is recorded so.
    func preparation(recordedAs record: Data) -> (any FormPreparation)?
}

extension FormPart {
    /// Makes a part of an item that was picked.
    ///
    /// - Parameters:
    ///   - item: The item. It is copied when the form is sent or enqueued.
    ///   - name: The name of the form's field.
    ///   - filename: The name of the file. Defaults to the item's own.
    ///   - contentType: The media type. Defaults to the item's own, or to the detected one.
    ///   - metadata: What is removed from a picture or a video while it is sent. Defaults to where it was taken and
    ///     whose it is; other files are sent as they are.
    ///   - preparation: What changes the part before the form is sent. Defaults to nothing.
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

/// A file that is removed with the last part, or layout of a body, that has it.
package final class OwnedFile: Sendable {
    private let url: URL

    package init(_ url: URL) {
        self.url = url
    }

    deinit {
        // Not on the actor that happens to release it last.
        Task.detached(priority: .utility) { [url] in try? FileManager.default.removeItem(at: url) }
    }
}
