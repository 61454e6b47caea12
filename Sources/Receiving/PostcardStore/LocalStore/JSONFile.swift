import PostcardFiles
import PostcardFoundation
import SystemPackage

/// A small file with a value as JSON, which is replaced as a whole. Every call blocks.
struct JSONFile: Sendable {
    let path: FilePath

    private static let maximumBytes: Int64 = 1 << 20

    /// - Returns: `nil` if there is no such file.
    /// - Throws: `FileError`, and ``StoreDamage`` or `DecodingError` if the file is damaged.
    func read<Value: Decodable>(_ type: Value.Type) throws -> Value? {
        try LocalFile(path).map { file in
            try JSONDecoder().decode(type, from: file.data(maximumBytes: Self.maximumBytes))
        }
    }

    /// Writes a file that is not there yet.
    func write(_ value: some Encodable) throws(FileError) {
        do {
            let file = try DurableFile(path)
            try file.write(JSONEncoder().encode(value).bytes)
            try file.synchronize()
        } catch {
            throw error as? FileError ?? FileError("write", path, error, reason: "\(error)")
        }
    }

    /// Replaces the value. After a crash the file has the new value or the old one.
    func replace(with value: some Encodable) throws(FileError) {
        let new = JSONFile(path: FilePath(path.string + ".new"))
        // What a crash or a full disk left of an earlier attempt.
        try? FileManager.default.removeItem(atPath: new.path.string)
        try new.write(value)
        try DurableFiles.move(new.path, to: path)
        try DurableFiles.synchronizeDirectory(path.removingLastComponent())
    }
}
