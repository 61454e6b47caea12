#if os(Linux)
package import Foundation

/// A directory that models a disk. What programs do to it is recorded, so that a test can then cut the power at any
/// moment.
///
/// ```swift
/// let disk = try await JournaledDisk()
/// let server = try await RunningServer(["serve", …, "--directory", disk.path("r")], environment: disk.environment)
/// _ = await server.terminate()
/// let cut = try disk.powerCut()
/// let violations = try await cut.violations { directory, moment in … }
/// ```
package struct JournaledDisk: Sendable {
    private let disk: TemporaryFolder
    private let files: TemporaryFolder
    /// What makes a program write down what it does to the disk.
    package let environment: [String: String]

    private static let shim = Task {
        let folder = try TemporaryFolder()
        let source = Repository.url("Tests/PowerCut/shim.c")
        let library = folder.url.appending(path: "shim.so").path
        // Each toolchain for Swift has a clang, which need not be in the path.
        let command = """
            for compiler in clang cc "$(dirname "$(readlink -f "$(command -v swift)")")/clang"; do
                if command -v "$compiler" > /dev/null; then exec "$compiler" "$@"; fi
            done
            echo 'No C compiler was found.' >&2
            exit 1
            """
        let options = ["-O1", "-shared", "-fPIC", "-pthread", "-o", library, source.standardizedFileURL.path]
        let ending = try await Program.run("sh", ["-c", command, "sh"] + options)
        guard ending.status == 0 else { throw ProgramFailure("The shim cannot be compiled: \(ending.messages)") }
        return (folder, library)
    }

    package init() async throws {
        disk = try Self.folder()
        files = try TemporaryFolder()
        let (_, library) = try await Self.shim.value
        let others = ProcessInfo.processInfo.environment["LD_PRELOAD"].map { ":" + $0 } ?? ""
        environment = [
            "LD_PRELOAD": library + others, "POSTCARD_DISK": disk.path,
            "POSTCARD_JOURNAL": files.url.appending(path: "journal").path,
        ]
    }

    /// In memory, where that is possible: a sync takes no time there.
    fileprivate static func folder() throws -> TemporaryFolder {
        if let folder = try? TemporaryFolder(in: URL(filePath: "/dev/shm")) { return folder }
        return try TemporaryFolder()
    }

    /// A path on the disk.
    package func path(_ path: String) -> String { disk.url.appending(path: path).path }

    /// How many bytes the journal has.
    package func journalSize() throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: environment["POSTCARD_JOURNAL"] ?? "")
        return (attributes[.size] as? NSNumber)?.intValue ?? 0
    }

    /// Reads the journal, once all programs have ended.
    ///
    /// - Throws: ``ProgramFailure`` if the journal does not say how the disk came to be as it is.
    package func powerCut() throws -> PowerCut {
        let journal = try PowerCutJournal(URL(filePath: environment["POSTCARD_JOURNAL"] ?? ""))
        var model = PowerCutDisk()
        for (index, change) in journal.entries.enumerated() { model.apply(change, entry: index) }
        var generator = SeededGenerator(seed: 0)
        let known = model.remains(names: .all, bytes: .all, using: &generator).contents
        let found = try FileManager.default.subpathsOfDirectory(atPath: disk.path)
        guard Set(found) == Set(known.map(\.path)) else {
            throw ProgramFailure("The disk has \(found.sorted()), and its journal \(known.map(\.path)).")
        }
        // SQLite's index of its log is mapped into memory, and created again after a crash.
        for case (let path, let bytes?) in known where !path.hasSuffix("-shm") {
            guard try Data(contentsOf: disk.url.appending(path: path)) == bytes else {
                throw ProgramFailure("The disk and its journal have different bytes in \(path).")
            }
        }
        return PowerCut(journal: journal)
    }
}

/// Power cuts after each entry of a journal.
package struct PowerCut: Sendable {
    package let journal: PowerCutJournal

    /// A broken promise.
    package struct Violation: Sendable, CustomStringConvertible {
        package let entry: Int
        let names: PowerCutDisk.Survival
        let bytes: PowerCutDisk.Survival
        package let promise: String

        package var description: String {
            "Cut after \(entry) entries, left of what was not synced: \(names) of the names, \(bytes) of the bytes. \(promise)"
        }
    }

    /// What can be left of what was not synced, from nothing to all, and what chance leaves.
    private static let survivals: [(names: PowerCutDisk.Survival, bytes: PowerCutDisk.Survival)] = [
        (.none, .none), (.all, .none), (.all, .lengths), (.none, .all), (.all, .all), (.some, .some),
    ]

    /// When the power is cut.
    package enum Moments: Sendable {
        /// After each entry.
        case entries
        /// Before each sync, when the most is not synced, and when something is promised.
        case syncs
        /// When something is promised.
        case promises
    }

    /// Cuts the power, and looks at what is left.
    ///
    /// - Parameters:
    ///   - promises: After how many entries more is promised than before, or less.
    ///   - ignoring: Syncs that are left out, by the paths of what they sync.
    ///   - check: Says which promises are broken in a directory when the first entries of the journal had happened. It
    ///     may change the directory.
    /// - Returns: The first broken promises; empty if none is.
    package func violations(
        at moments: Moments, promises: Set<Int>, ignoring isIgnored: (String) -> Bool = { _ in false },
        _ check: (_ directory: URL, _ entries: Int) async throws -> [String]
    ) async throws -> [Violation] {
        let folder = try JournaledDisk.folder()
        let directory = folder.url.appending(path: "disk")
        var model = PowerCutDisk()
        var seen: Set<Int> = []
        for index in 0...journal.entries.count {
            if index > 0 {
                let isIgnored = journal.syncs[index - 1].map(isIgnored) ?? false
                model.apply(journal.entries[index - 1], entry: index - 1, isIgnored: isIgnored)
            }
            // What did before may not do any longer.
            if promises.contains(index) { seen = [] }
            guard index == journal.entries.count || isMoment(index, moments, promises) else { continue }
            for (number, survival) in Self.survivals.enumerated() {
                var chance = SeededGenerator(seed: UInt64(index * Self.survivals.count + number))
                let remains = model.remains(names: survival.names, bytes: survival.bytes, using: &chance)
                guard seen.insert(remains.signature).inserted else { continue }
                try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
                defer { try? FileManager.default.removeItem(at: directory) }
                try remains.write(to: directory)
                let broken = try await check(directory, index)
                guard broken.isEmpty else {
                    return broken.map {
                        Violation(entry: index, names: survival.names, bytes: survival.bytes, promise: $0)
                    }
                }
            }
        }
        return []
    }

    private func isMoment(_ index: Int, _ moments: Moments, _ promises: Set<Int>) -> Bool {
        switch moments {
        case .entries: true
        case .syncs: journal.syncs[index] != nil || promises.contains(index)
        case .promises: promises.contains(index)
        }
    }
}
#endif
