#if os(Linux)
package import Foundation

/// What this process holds open, distinguished by what it leads to, so that tests that run at the same time do not
/// count one another's.
package enum OpenDescriptors {
    /// How many sockets are connected to a port.
    package static func sockets(connectedTo port: Int) throws -> Int {
        let targets = try Set(inodes(connectedTo: port).map { "socket:[\($0)]" })
        return try self.targets().count { targets.contains($0) }
    }

    /// How many files in a folder are open.
    package static func files(in folder: URL) throws -> Int {
        try targets().count { $0.hasPrefix(folder.path + "/") }
    }

    /// How many descriptors another process has for files and pipes. Connections close in their own time, and timers
    /// and the like are opened when they are first needed, and kept.
    package static func filesAndPipes(of process: Int32) throws -> Int {
        try targets(of: "\(process)").count { !$0.hasPrefix("socket:") && !$0.hasPrefix("anon_inode:") }
    }

    private static func targets(of process: String = "self") throws -> [String] {
        let folder = "/proc/\(process)/fd"
        let links = try FileManager.default.contentsOfDirectory(atPath: folder)
        // One of them was the listing's own, and others may have gone since.
        return links.compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)") }
    }

    /// The numbers of the sockets whose other end has a port; see proc_net(5) for the columns.
    private static func inodes(connectedTo port: Int) throws -> [Substring] {
        let table = try String(contentsOfFile: "/proc/net/tcp", encoding: .utf8)
        return table.split(separator: "\n").dropFirst().compactMap { line in
            let columns = line.split(separator: " ")
            guard columns.count > 9, let remote = columns[2].split(separator: ":").last else { return nil }
            return Int(remote, radix: 16) == port ? columns[9] : nil
        }
    }
}
#endif
