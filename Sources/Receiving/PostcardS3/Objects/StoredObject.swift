import NIOCore
import PostcardFoundation

/// What the store says of an object without its content.
struct ObjectHead: Sendable {
    let size: Int64
    /// What identifies the content, with its quotes.
    let etag: String?
    let contentType: String?
    /// The fields that were stored with the object, without `x-amz-meta-`, in lower case.
    let metadata: [String: String]
}

extension String {
    /// An ETag without its quotes, as events and many clients write it.
    var unquoted: String { filter { $0 != "\"" } }
}

/// An object of a listing.
struct ListedObject: Sendable, Hashable {
    /// The key below the bucket's prefix.
    let key: String
    let size: Int64
    /// When the object was written, by the clock of the store.
    let modified: Date

    /// Sizes and offsets. No store keeps more in an object, and sums of them fit into a number.
    static let sizes: ClosedRange<Int64> = 0...(1 << 50)
}

/// A part of a listing.
struct ObjectPage: Sendable {
    var objects: [ListedObject]
    /// Whether more objects follow.
    var isTruncated: Bool
    /// The time of the listing, by the clock of the store.
    var time: Date
}

/// What became of a request to create an object.
enum Creation: Sendable {
    case created
    /// There is an object already. An earlier try of the same request may have made it.
    case exists
}
