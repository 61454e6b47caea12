/// An error that says whether the same call may succeed later.
package protocol PassingError: Error {
    /// Whether it may: the disk was full, a file locked, or a network missing.
    var mayPass: Bool { get }
}
