import PostcardCLibrary
public import PostcardFoundation
import SystemPackage

extension FormPart {
    /// The folder of the files that are made for parts, if the caller passes no folder: "Postcard" in the temporary
    /// folder, followed by the number of the user where users share that, such as "Postcard-1000" on Linux. Only its
    /// owner can use it. The files are copies of loaded files, and pictures that were made to fit.
    ///
    /// A copy that was made for a part is removed with the last copy of the part, and what is prepared for an upload
    /// when the upload is over. What a run has left that was killed is removed by the next one that loads or prepares
    /// something, or opens a queue.
    public static var temporaryFolder: URL {
        #if canImport(Darwin)
        let name = "Postcard"
        #else
        let name = "Postcard-\(geteuid())"
        #endif
        return FileManager.default.temporaryDirectory.appending(component: name, directoryHint: .isDirectory)
    }

    /// Makes the folder for files of parts if it does not exist.
    ///
    /// - Parameter folder: The folder that the caller chose. Its permissions stay as they are if it exists. Defaults to
    ///   ``temporaryFolder``, which must belong to this user.
    /// - Returns: The folder.
    package static func makeFolder(_ folder: URL? = nil) throws -> URL {
        let made = folder ?? temporaryFolder
        if !FileManager.default.fileExists(atPath: made.path) {
            try FileManager.default.createDirectory(
                at: made, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        }
        if folder == nil { try closeToOthers(made) }
        return made
    }

    /// Makes sure that only this user can use a folder whose name other users know, and may have taken.
    private static func closeToOthers(_ folder: URL) throws {
        let descriptor = try FileDescriptor.open(
            FilePath(folder.path), .readOnly, options: [.directory, .noFollow, .closeOnExec])
        try descriptor.closeAfter {
            guard try descriptor.stat().userID.rawValue == geteuid(), fchmod(descriptor.rawValue, 0o700) == 0 else {
                throw Errno.notPermitted
            }
        }
    }
}
