import PostcardServer

/// The uploads to which something happened last, such as their deletion. A client can delete an upload before the request
/// that brought it has ended, so what follows from that request is compared with these.
struct RecentUploads: Sendable {
    /// Oldest first.
    private var ordered: [UploadID] = []
    private var known: Set<UploadID> = []

    /// How many are remembered.
    private static let maximum = 1000

    func contains(_ id: UploadID) -> Bool { known.contains(id) }

    /// Adds an upload.
    ///
    /// - Returns: Whether it was not there yet.
    @discardableResult
    mutating func insert(_ id: UploadID) -> Bool {
        guard known.insert(id).inserted else { return false }
        ordered.append(id)
        if ordered.count > Self.maximum { known.remove(ordered.removeFirst()) }
        return true
    }
}
