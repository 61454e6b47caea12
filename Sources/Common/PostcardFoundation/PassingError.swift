/// An error that says whether the same call may succeed later.
package protocol PassingError: Error {
    /// Whether the same call may succeed later: the disk was full, a file locked, or a network missing.
    var mayPass: Bool { get }
}
