/// What is wrong with a file.
package struct PictureFault: Error {
    /// The offset at which it was found, in bytes from the start of the file.
    package let offset: Int64

    /// What was found and where, as the end of a sentence.
    package let reason: String

    /// The error of reading the file, if that failed.
    package let underlyingError: (any Error)?

    init(at offset: Int64, _ reason: String, underlyingError: (any Error)? = nil) {
        self.offset = offset
        self.reason = "\(reason), at byte \(offset)"
        self.underlyingError = underlyingError
    }
}

/// What is wrong with a piece of metadata in memory.
struct BlockFault: Error {
    /// The index of the fault, counted from the start of the piece.
    let index: Int
    let reason: String

    init(at index: Int, _ reason: String) {
        self.index = index
        self.reason = reason
    }
}
