#if os(Linux)
package import Foundation

/// What is on a disk for sure after the first entries of a journal, and what may or may not be.
///
/// The model takes the promises of POSIX and no more. A file's bytes are on the disk once the file was synced after
/// they were written, and a name once its directory was synced after the name was made or removed. All else may be
/// there or not after a power cut, in any order: of bytes that were not synced some may be there, or only the length
/// that they give the file, with zeros. Two things are taken for granted, as all journaling file systems have them: a
/// rename happens as a whole, in both directories once either is synced, and what happens to one name happens in its
/// order.
package struct PowerCutDisk {
    package typealias Node = PowerCutJournal.Node
    package typealias Name = PowerCutJournal.Name

    /// What a power cut leaves of the changes that were not synced.
    package enum Survival: Hashable, Sendable {
        case none, all
        /// Of files, the lengths alone.
        case lengths
        case some
    }

    fileprivate struct File {
        var bytes = Data()
        /// Counts what became of it, as a name for the bytes.
        var version = 0
        var pending: [(entry: Int, change: PowerCutJournal.Change)] = []
    }

    private var directories: [Node: [String: Node]] = [PowerCutJournal.root: [:]]
    private var files: [Node: File] = [:]
    private var pending: [(entry: Int, change: PowerCutJournal.Change)] = []

    package init() {}

    /// Does what an entry says.
    ///
    /// - Parameter isIgnored: Whether a sync is left out.
    package mutating func apply(_ change: PowerCutJournal.Change, entry: Int, isIgnored: Bool = false) {
        switch change {
        case .make(_, let node, let isDirectory):
            if isDirectory {
                directories[node] = [:]
            } else if files[node] == nil {
                files[node] = File()
            }
            pending.append((entry, change))
        case .unlink, .rename: pending.append((entry, change))
        case .write(let node, _, _), .truncate(let node, _): files[node]?.pending.append((entry, change))
        case .sync(let node, let count) where !isIgnored:
            if directories[node] != nil { synchronizeNames(in: node, count: count) } else { synchronize(node, count) }
        case .sync, .output: break
        }
    }

    private mutating func synchronize(_ node: Node, _ count: Int) {
        guard var file = files[node] else { return }
        files[node] = nil
        while let first = file.pending.first, first.entry < count {
            file.bytes.apply(first.change)
            file.version += 1
            file.pending.removeFirst()
        }
        files[node] = file
    }

    private mutating func synchronizeNames(in directory: Node, count: Int) {
        // What happened to the same names before is there too.
        var names: Set<Name> = []
        var isSynced: [Bool] = []
        for (entry, change) in pending.reversed() {
            let its = change.names
            let isIn = entry < count && its.contains { $0.directory == directory }
            isSynced.append(isIn || its.contains(where: names.contains))
            if isSynced.last == true { names.formUnion(its) }
        }
        for (isSynced, (_, change)) in zip(isSynced.reversed(), pending) where isSynced { directories.apply(change) }
        pending = zip(isSynced.reversed(), pending).filter { !$0.0 }.map(\.1)
    }

    // MARK: - After a power cut

    /// The files and directories that a power cut leaves.
    package struct Remains: Sendable {
        /// By paths; `nil` for a directory. A directory comes before what is in it.
        package private(set) var contents: [(path: String, bytes: Data?)] = []
        /// The same where the same entries of a journal left it.
        package private(set) var signature = 0

        fileprivate mutating func append(_ path: String, _ bytes: Data?) { contents.append((path, bytes)) }
        fileprivate mutating func sign(_ hasher: Hasher) { signature = hasher.finalize() }

        /// Makes the files and directories in a directory, which is empty.
        package func write(to directory: URL) throws {
            for (path, bytes) in contents {
                let path = directory.path + "/" + path
                guard let bytes else {
                    guard mkdir(path, 0o700) == 0 else { throw POSIXError(.EIO) }
                    continue
                }
                let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL, 0o600)
                guard descriptor >= 0 else { throw POSIXError(.EIO) }
                defer { close(descriptor) }
                let written = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
                guard written == bytes.count else { throw POSIXError(.EIO) }
            }
        }
    }

    /// What a power cut leaves now.
    ///
    /// - Parameters:
    ///   - names: What becomes of names that are not synced.
    ///   - bytes: What becomes of bytes that are not synced.
    ///   - generator: The chance for both.
    package func remains(
        names: Survival, bytes: Survival, using generator: inout some RandomNumberGenerator
    ) -> Remains {
        var tree = directories
        if names != .none {
            var lost: Set<Name> = []
            for (_, change) in pending {
                let its = change.names
                if names == .some && (its.contains(where: lost.contains) || Bool.random(using: &generator)) {
                    lost.formUnion(its)
                } else {
                    tree.apply(change)
                }
            }
        }
        var (remains, hasher) = (Remains(), Hasher())
        collect(PowerCutJournal.root, "", tree, bytes, &remains, &hasher, &generator)
        remains.sign(hasher)
        return remains
    }

    private func collect(
        _ directory: Node, _ path: String, _ tree: [Node: [String: Node]], _ survival: Survival,
        _ remains: inout Remains, _ hasher: inout Hasher, _ generator: inout some RandomNumberGenerator
    ) {
        for (name, node) in (tree[directory] ?? [:]).sorted(by: { $0.key < $1.key }) {
            let path = path.isEmpty ? name : path + "/" + name
            hasher.combine(path)
            hasher.combine(node)
            if let file = files[node] {
                remains.append(path, file.remains(survival, &hasher, &generator))
            } else {
                remains.append(path, nil)
                collect(node, path, tree, survival, &remains, &hasher, &generator)
            }
        }
    }
}

extension PowerCutDisk.File {
    fileprivate func remains(
        _ survival: PowerCutDisk.Survival, _ hasher: inout Hasher, _ generator: inout some RandomNumberGenerator
    ) -> Data {
        hasher.combine(version)
        guard survival != .none else { return bytes }
        var bytes = bytes
        for (entry, change) in pending {
            hasher.combine(entry)
            guard survival != .all, case .write(let node, let offset, let written) = change else {
                let isKept = survival != .some || Bool.random(using: &generator)
                hasher.combine(isKept)
                if isKept { bytes.apply(change) }
                continue
            }
            // A piece of it; disks write sectors, or more at a time.
            var piece = 0..<0
            if survival == .some {
                let ends = (0...1).map { _ in Int.random(in: 0...(written.count / 512 + 1), using: &generator) * 512 }
                piece = (ends.min() ?? 0)..<(ends.max() ?? 0)
            }
            piece = piece.clamped(to: 0..<written.count)
            let isAsLong = survival == .lengths || Bool.random(using: &generator)
            hasher.combine(piece)
            hasher.combine(isAsLong)
            if isAsLong && bytes.count < offset + written.count {
                bytes.apply(.truncate(node, length: offset + written.count))
            }
            if !piece.isEmpty {
                bytes.apply(.write(node, offset: offset + piece.lowerBound, written.subdata(in: piece)))
            }
        }
        return bytes
    }
}

extension PowerCutJournal.Change {
    /// The names that it changes.
    fileprivate var names: [PowerCutJournal.Name] {
        switch self {
        case .make(let name, _, _), .unlink(let name): [name]
        case .rename(let old, let new): [old, new]
        case .write, .truncate, .sync, .output: []
        }
    }
}

extension Data {
    fileprivate mutating func apply(_ change: PowerCutJournal.Change) {
        switch change {
        case .write(_, let offset, let written):
            if count < offset { append(Data(count: offset - count)) }
            replaceSubrange(offset..<Swift.max(offset, Swift.min(count, offset + written.count)), with: written)
        case .truncate(_, let length):
            if count < length { append(Data(count: length - count)) } else { self = subdata(in: 0..<length) }
        case .make, .unlink, .rename, .sync, .output: break
        }
    }
}

extension [PowerCutJournal.Node: [String: PowerCutJournal.Node]] {
    fileprivate mutating func apply(_ change: PowerCutJournal.Change) {
        switch change {
        case .make(let name, let node, _): self[name.directory, default: [:]][name.text] = node
        case .unlink(let name): self[name.directory]?[name.text] = nil
        case .rename(let old, let new):
            guard let node = self[old.directory]?.removeValue(forKey: old.text) else { return }
            self[new.directory, default: [:]][new.text] = node
        case .write, .truncate, .sync, .output: break
        }
    }
}
#endif
