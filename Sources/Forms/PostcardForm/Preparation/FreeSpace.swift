import PostcardCLibrary
package import PostcardFoundation
import SystemPackage

/// How many bytes a copy may have. It is looked at before a copy begins: a full disk is what the user of a phone
/// notices in all apps.
package enum FreeSpace {
    /// The bytes that this program can write to a folder's volume; `nil` if that is not known.
    package static func bytes(at folder: URL) -> Int64? {
        #if os(iOS) || os(macOS) || os(visionOS)
        // With what the system frees on demand, because an upload is what a person asked for:
        // developer.apple.com/forums/thread/826582. A volume that frees nothing may report 0.
        let values = try? folder.resourceValues(forKeys: [.volumeAvailableCapacityForImportantUsageKey])
        if let bytes = values?.volumeAvailableCapacityForImportantUsage, bytes > 0 { return bytes }
        #endif
        var room = statvfs()
        guard FilePath(folder.path).withPlatformString({ statvfs($0, &room) }) == 0 else { return nil }
        let (bytes, isOver) = UInt64(room.f_bavail).multipliedReportingOverflow(by: UInt64(room.f_frsize))
        return isOver ? .max : Int64(clamping: bytes)
    }

    /// Whether there are too few bytes for a copy of a file.
    ///
    /// - Parameter freeBytes: The bytes that are free in a folder.
    /// - Returns: How many bytes the copy needs, and how many are free; `nil` if they are enough or not known, and for
    ///   a folder, whose own size says nothing of its files.
    package static func shortage(
        ofCopying file: URL, to folder: URL, freeBytes: (URL) -> Int64? = bytes
    ) -> (needed: Int64, free: Int64)? {
        guard let status = try? FilePath(file.path).stat(), status.type == .regular,
            let free = freeBytes(folder), free < status.size, !isCloned(status, to: folder)
        else { return nil }
        return (Int64(status.size), free)
    }

    /// Whether a copy takes no space, because the system makes a clone.
    private static func isCloned(_ file: Stat, to folder: URL) -> Bool {
        #if os(iOS) || os(macOS) || os(visionOS)
        let values = try? folder.resourceValues(forKeys: [.volumeSupportsFileCloningKey])
        return values?.volumeSupportsFileCloning == true
            && (try? FilePath(folder.path).stat())?.deviceID == file.deviceID
        #else
        return false
        #endif
    }
}
