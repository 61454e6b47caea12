#if os(Linux)
package import Foundation

/// What programs did to a disk, in order, as `Tests/PowerCut/shim.c` wrote it down.
package struct PowerCutJournal: Sendable {
    /// A file or directory; numbers are not used again, unlike those of a file system.
    package typealias Node = Int

    package enum Change: Sendable {
        case make(Name, Node, isDirectory: Bool)
        case unlink(Name)
        case rename(Name, Name)
        case write(Node, offset: Int, Data)
        case truncate(Node, length: Int)
        /// All that entries before `count` did to the node is on the disk.
        case sync(Node, count: Int)
        /// Bytes are about to be sent to a socket or written to standard output.
        case output(Data)
    }

    /// A place for a file or directory.
    package struct Name: Sendable, Hashable {
        package let directory: Node
        package let text: String
    }

    package let entries: [Change]
    /// The paths that were synced, below the disk, by the indexes of the entries.
    package let syncs: [Int: String]
    /// The directory that models the disk.
    static let root: Node = 0
    /// Where each entry begins in the file.
    private let starts: [Int]

    /// The number of entries within the first bytes of the journal.
    package func count(at byte: Int) -> Int { starts.partitionPoint { $0 >= byte } }

    /// Reads a journal.
    package init(_ file: URL) throws {
        var reader = JournalReader(bytes: try Data(contentsOf: file, options: .alwaysMapped))
        while try reader.readEntry() {}
        (entries, syncs, starts) = (reader.entries, reader.syncs, reader.starts)
    }
}

private struct JournalReader {
    typealias Node = PowerCutJournal.Node
    typealias Name = PowerCutJournal.Name

    let bytes: Data
    private(set) var entries: [PowerCutJournal.Change] = []
    private(set) var syncs: [Int: String] = [:]
    private(set) var starts: [Int] = []
    private var position = 0
    /// The nodes by the numbers that the file system has for them now.
    private var numbers: [Substring: Node] = [:]
    private var nodeCount = 1
    private var names: [Name: Node] = [:]
    private var places: [Node: Name] = [:]

    init(bytes: Data) {
        self.bytes = bytes
    }

    /// - Returns: Whether there was one.
    mutating func readEntry() throws -> Bool {
        guard position < bytes.count else { return false }
        let start = position
        guard let end = bytes[position...].firstIndex(of: UInt8(ascii: "\n")) else { throw damage(start) }
        let words = String(decoding: bytes[position..<end], as: UTF8.self).split(separator: " ")
        position = end + 1
        switch (words.first, words.count) {
        case ("disk", 2):
            numbers[words[1]] = PowerCutJournal.root
            return true
        case ("file", 4), ("directory", 4):
            let name = Name(directory: try node(words[1]), text: try text(words[3], start))
            numbers[words[2]] = nodeCount
            put(nodeCount, name)
            entries.append(.make(name, nodeCount, isDirectory: words[0] == "directory"))
            nodeCount += 1
        case ("link", 4):
            let name = Name(directory: try node(words[1]), text: try text(words[3], start))
            let linked = try node(words[2])
            put(linked, name)
            entries.append(.make(name, linked, isDirectory: false))
        case ("unlink", 3):
            let name = Name(directory: try node(words[1]), text: try text(words[2], start))
            if let node = names.removeValue(forKey: name) { places[node] = nil }
            entries.append(.unlink(name))
        case ("rename", 5):
            let (from, to) = (try node(words[1]), try node(words[2]))
            let both = try payload([words[3], words[4]], start)
            let (old, new) = (
                Name(directory: from, text: String(decoding: both[0], as: UTF8.self)),
                Name(directory: to, text: String(decoding: both[1], as: UTF8.self))
            )
            if let node = names.removeValue(forKey: old) { put(node, new) }
            entries.append(.rename(old, new))
        case ("write", 4):
            let written = try node(words[1])
            guard let offset = Int(words[2]) else { throw damage(start) }
            entries.append(.write(written, offset: offset, try payload([words[3]], start)[0]))
        case ("truncate", 3):
            guard let length = Int(words[2]) else { throw damage(start) }
            entries.append(.truncate(try node(words[1]), length: length))
        case ("sync", 3):
            guard let count = Int(words[2]) else { throw damage(start) }
            let synced = try node(words[1])
            syncs[entries.count] = path(synced)
            entries.append(.sync(synced, count: starts.partitionPoint { $0 >= count }))
        case ("output", 2):
            entries.append(.output(try payload([words[1]], start)[0]))
        default: throw damage(start)
        }
        starts.append(start)
        return true
    }

    private mutating func put(_ node: Node, _ name: Name) {
        names[name] = node
        places[node] = name
    }

    private func path(_ node: Node) -> String {
        var (path, node) = ("", node)
        while let name = places[node] {
            path = path.isEmpty ? name.text : name.text + "/" + path
            node = name.directory
        }
        return path
    }

    private func node(_ number: Substring) throws -> Node {
        guard let node = numbers[number] else {
            throw ProgramFailure("The journal says nothing of how \(number) was made.")
        }
        return node
    }

    private mutating func text(_ size: Substring, _ start: Int) throws -> String {
        String(decoding: try payload([size], start)[0], as: UTF8.self)
    }

    private mutating func payload(_ sizes: [Substring], _ start: Int) throws -> [Data] {
        var pieces: [Data] = []
        for size in sizes {
            guard let size = Int(size), size >= 0, size < bytes.count - position else { throw damage(start) }
            pieces.append(bytes.subdata(in: position..<(position + size)))
            position += size
        }
        guard bytes[position] == UInt8(ascii: "\n") else { throw damage(start) }
        position += 1
        return pieces
    }

    private func damage(_ position: Int) -> ProgramFailure {
        ProgramFailure("The journal cannot be read from byte \(position) on.")
    }
}

extension [Int] {
    /// In ascending numbers, the index of the first that the condition holds for.
    fileprivate func partitionPoint(_ condition: (Int) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if condition(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
#endif
