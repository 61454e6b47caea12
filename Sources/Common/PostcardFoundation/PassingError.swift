/// An error that may be temporary.
package protocol PassingError: Error {
    /// Whether the same call may succeed later, for example after a full disk, a locked file or a missing network.
    var mayPass: Bool { get }
}
