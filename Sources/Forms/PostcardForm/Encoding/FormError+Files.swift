import SystemPackage

extension FormError {
    /// The file cannot be opened or read, for the reason that the system reported.
    static func file(_ path: String, _ errno: Errno, partIndex: Int) -> FormError {
        switch errno {
        case .noSuchFileOrDirectory, .notDirectory:
            FormError(
                .fileMissing, "No such file: \(path)", advice: "Check the path.", path: path, partIndex: partIndex,
                underlyingError: errno)
        default:
            FormError(
                .fileUnreadable, "The file \(path) cannot be read: \(errno)",
                advice: "Check that the file is readable.", path: path, partIndex: partIndex, underlyingError: errno)
        }
    }
}
