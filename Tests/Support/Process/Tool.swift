import Foundation
import Testing

/// The programs of other projects that tests run, such as curl and nginx.
package enum Tool {
    /// Skips the rest of the current test if one of the programs is not installed. In CI, where everything has to be
    /// tested, that is an error.
    package static func require(_ names: String...) throws {
        for name in names where !isInstalled(name) {
            let reason = "\(name) is not installed"
            guard ProcessInfo.processInfo.environment["CI"] == nil else { throw ProgramFailure(reason) }
            #if compiler(>=6.3)
            try Test.cancel(Comment(rawValue: reason))
            #else
            throw ProgramFailure(reason)
            #endif
        }
    }

    /// Whether a program can be found: in the path, or where systems keep servers.
    package static func isInstalled(_ name: String) -> Bool {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let folders: [String] = path.split(separator: ":").map(String.init) + ["/usr/local/sbin", "/usr/sbin", "/sbin"]
        return name.contains("/")
            ? FileManager.default.isExecutableFile(atPath: name)
            : folders.contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(name)") }
    }
}
