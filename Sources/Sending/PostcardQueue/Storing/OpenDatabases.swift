import PostcardFiles
import Synchronization
import SystemPackage

/// The open databases of this process.
///
/// SQLite uses the locks of `fcntl`, which belong to the process. Closing any descriptor of the file releases all of
/// them, even those of another connection. Then two processes may write at the same time
/// (https://www.sqlite.org/howtocorrupt.html, section 2.2). So the file of an open database must not be opened again
/// for a check.
final class OpenDatabases: Sendable {
    static let shared = OpenDatabases()

    fileprivate struct Identity: Hashable {
        let device: DeviceID
        let inode: Inode

        init(_ status: Stat) {
            device = status.deviceID
            inode = status.inode
        }
    }

    /// A use of a database, which ends when the object is released.
    final class Use: Sendable {
        /// A name for the database that is the same in all processes, whatever paths they use.
        let name: String
        private let end: @Sendable () -> Void

        fileprivate init(_ identity: Identity, _ end: @escaping @Sendable () -> Void) {
            name = "\(identity.device.rawValue).\(identity.inode.rawValue)"
            self.end = end
        }

        deinit { end() }
    }

    private let uses = Mutex<[Identity: Int]>([:])

    /// Registers a use of a database, until the returned object is released.
    ///
    /// - Parameter prepare: Opens, checks and closes the files of an unused database. Makes the database if there is
    ///   none.
    /// - Throws: Errors of `prepare`; `FileError` if the database does not exist after `prepare`.
    func use(
        _ name: FilePath.Component, in directory: PrivateDirectory, preparing prepare: () throws -> Void
    ) throws -> Use {
        let identity = try uses.withLock { uses in
            if let known = try directory.status(of: name).map(Identity.init), let count = uses[known] {
                uses[known] = count + 1
                return known
            }
            try prepare()
            guard let status = try directory.status(of: name) else {
                throw FileError("look at", directory.path.appending(name), Errno.noSuchFileOrDirectory)
            }
            let identity = Identity(status)
            uses[identity, default: 0] += 1
            return identity
        }
        return Use(identity) { [self] in
            uses.withLock { uses in
                let count = uses[identity] ?? 1
                uses[identity] = count > 1 ? count - 1 : nil
            }
        }
    }
}
