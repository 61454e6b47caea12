/// A store that a receiver keeps in order: it is swept from time to time, and asked whether it works.
public protocol MaintainedUploadStore: UploadStore {
    /// What the store needs and what may fail, such as `The object store`. Anyone can read it in the response to
    /// `GET /health`.
    var dependency: String { get }

    /// How often ``sweep()`` is called.
    var sweepInterval: Duration { get }

    /// Checks that an upload could begin, within a few seconds.
    ///
    /// - Throws: ``UploadStoreError`` if it could not.
    func checkReadiness() async throws

    /// Removes what has expired, and what interrupted uploads and deletions left behind.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails. The next sweep does what is left.
    func sweep() async throws
}
