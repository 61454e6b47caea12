/// The list of background uploads whenever something changed.
public struct BackgroundUploadUpdates: AsyncSequence, Sendable {
    let account: BackgroundAccount

    public func makeAsyncIterator() -> Iterator {
        Iterator(account: account, changes: account.changes().makeAsyncIterator())
    }

    /// Gives one list after the other. It belongs to one task.
    public struct Iterator: AsyncIteratorProtocol {
        let account: BackgroundAccount
        var changes: AsyncStream<Void>.Iterator

        public mutating func next() async -> [BackgroundUpload]? {
            await changes.next(isolation: #isolation) == nil ? nil : account.uploads
        }
    }
}
