import PostcardCLibrary
package import SystemPackage

/// Reads whole files into memory, such as files of options, rules, tokens or certificates.
package enum SmallFile {
    /// The reason why a file is not read, as the end of a sentence that begins with the file's name.
    package struct ReadError: Error, CustomStringConvertible {
        package let description: String
    }

    /// The default maximum size of a file: 64 MiB.
    package static let maximumBytes = 64 << 20

    /// The bytes of a file or pipe. Throws ``ReadError`` if the file is missing, unreadable, larger than the maximum,
    /// or a device without an end.
    package static func bytes(of path: FilePath, atMost maximumBytes: Int = maximumBytes) throws(ReadError) -> [UInt8] {
        let file: FileDescriptor
        do {
            file = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
        } catch {
            throw unreadable(error)
        }
        defer { try? file.close() }
        return try bytes(of: file, atMost: maximumBytes)
    }

    /// The bytes of an open file or pipe, which stays open.
    package static func bytes(
        of file: FileDescriptor, atMost maximumBytes: Int = maximumBytes
    ) throws(ReadError) -> [UInt8] {
        try checkEnd(of: file)
        do {
            var bytes: [UInt8] = []
            var piece = [UInt8](repeating: 0, count: 256 << 10)
            while true {
                let count = try piece.withUnsafeMutableBytes { try file.read(into: $0) }
                guard count > 0 else { return bytes }
                bytes += piece[..<count]
                guard bytes.count <= maximumBytes else {
                    throw ReadError(
                        description: "is larger than the \(maximumBytes >> 20) MiB that are read into memory.")
                }
            }
        } catch let error as ReadError {
            throw error
        } catch {
            throw unreadable(error)
        }
    }

    /// Throws a ``ReadError`` for a device without an end, such as /dev/zero. Terminals are allowed, because a person
    /// can end the input. Empty devices such as /dev/null are allowed too.
    package static func checkEnd(of file: FileDescriptor) throws(ReadError) {
        do {
            guard [.characterSpecial, .blockSpecial].contains(try file.stat().type), isatty(file.rawValue) == 0 else {
                return
            }
            var byte: UInt8 = 0
            guard try withUnsafeMutableBytes(of: &byte, { try file.read(into: $0) }) > 0 else { return }
        } catch {
            throw unreadable(error)
        }
        throw ReadError(description: "is a device without an end. Choose a regular file or a pipe.")
    }

    private static func unreadable(_ error: any Error) -> ReadError {
        ReadError(description: "cannot be read: \(error)")
    }
}
