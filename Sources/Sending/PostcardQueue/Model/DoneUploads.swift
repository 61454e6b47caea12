/// How long a queue lists uploads that are done.
///
/// The form of an upload that is done is removed at once. Its entry in the list, with the server's response, stays until
/// the app has acknowledged it, see ``UploadQueue/outcomes``, and then within these limits. ``UploadQueue/doneCount`` also
/// counts the uploads that are no longer listed.
public struct DoneUploads: Sendable, Hashable {
    /// The maximum number of acknowledged uploads that are listed, the latest ones. Defaults to 100. `nil` means no limit.
    public var maximumCount: Int?

    /// How long an upload is listed after it was done. Defaults to 30 days. `nil` means no limit.
    public var maximumAge: Duration?

    /// Lists every upload until ``UploadQueue/clear(_:with:)``.
    public static let all = DoneUploads(maximumCount: nil, maximumAge: nil)

    /// Makes limits. The parameters are documented with the properties of the same names.
    public init(maximumCount: Int? = 100, maximumAge: Duration? = .seconds(2_592_000)) {
        self.maximumCount = maximumCount.map { max($0, 0) }
        self.maximumAge = maximumAge
    }
}
