import Logging
import PostcardFiles
import PostcardFoundation
import Synchronization
import SystemPackage

/// An error in stored data: the bytes on the disk are not those that were written.
struct StoreDamage: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }

    /// Whether an error that was thrown while reading means damage, and not that the disk or the system failed.
    static func isCause(of error: any Error) -> Bool {
        error is StoreDamage || error is DecodingError || (error as? FileError)?.isReplaced == true
    }
}

/// Moves damaged uploads out of the way of others, and counts them. None is removed: someone may repair it.
final class DamagedUploads: Sendable {
    private let directory: StoreDirectory
    private let logger: Logger
    private let number: Atomic<Int>

    /// Counts those of earlier starts. Blocks.
    init(directory: StoreDirectory, logger: Logger) {
        self.directory = directory
        self.logger = logger
        let names = try? FileManager.default.contentsOfDirectory(atPath: directory.damaged.string)
        number = Atomic(names?.count ?? 0)
    }

    var count: Int { number.load(ordering: .relaxed) }

    /// Moves an upload's folder out of the way, and says so once. Blocks.
    ///
    /// - Parameter name: What the log calls the upload.
    func setAside(_ folder: FilePath, _ name: String, _ error: any Error) {
        do throws(FileError) {
            guard try directory.setAside(folder) else { return }
            number.add(1, ordering: .relaxed)
            logger.error(
                "Set a damaged upload aside, in .damaged", metadata: ["upload": "\(name)", "error": "\(error)"])
        } catch {
            logger.error("Could not set a damaged upload aside", metadata: ["upload": "\(name)", "error": "\(error)"])
        }
    }
}
