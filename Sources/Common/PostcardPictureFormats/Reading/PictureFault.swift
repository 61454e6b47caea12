/// What is wrong with a file.
package struct PictureFault: Error {
    /// The offset at which it was found, in bytes from the start of the file.
    package let offset: Int64

    /// What was found, as the end of a sentence.
    let finding: String

    /// The error of reading the file, if that failed.
    package let underlyingError: (any Error)?

    init(at offset: Int64, _ reason: String, underlyingError: (any Error)? = nil) {
        self.offset = offset
        finding = reason
        self.underlyingError = underlyingError
    }

    /// What was found and where, as the end of a sentence.
    package var reason: String { "\(finding), at byte \(offset)" }
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
