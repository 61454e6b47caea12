import NIOCore
import PostcardFiles
import PostcardFoundation
import SystemPackage

/// The file with the JSON of a record. A record may have tens of megabytes, so only small records are decoded. A
/// request needs either a few bytes of a large record, or all bytes unchanged. Every call blocks, and throws
/// ``StoreDamage`` or `DecodingError` if the file is damaged.
///
/// The folder of a large record also has a file with the offsets of the file descriptions in the record.
struct StoredRecord {
    let id: UploadID
    let file: LocalFile

    private static let damage = StoreDamage("The file is not a record, or not all of one.")

    /// The maximum size of a record that is decoded to check it or to find a file, in bytes.
    private static let smallBytes: Int64 = 64 << 10
    /// The maximum size of a record, in bytes. The text of a larger form would not fit in memory.
    private static let maximumBytes: Int64 = 1 << 30
    /// The maximum size of a file's description, in bytes. A part header is never that large.
    private static let maximumFileBytes: Int64 = 4 << 20

    func record() throws -> UploadRecord {
        let record = try UploadRecord(json: file.data(maximumBytes: Self.maximumBytes))
        guard record.id == id else { throw StoreDamage("The record is that of another upload, \(record.id).") }
        for (index, file) in record.files.enumerated() { try check(file, at: index) }
        return record
    }

    /// Checks that the file is a complete record. Of a large record, only the beginning and the end are checked.
    func check() throws {
        guard file.size > Self.smallBytes else {
            _ = try record()
            return
        }
        guard try file.bytes(at: 0, count: Self.beginning.count).readableBytesView.elementsEqual(Self.beginning) else {
            throw Self.damage
        }
        _ = try received()
    }

    private static let beginning = Array(UploadRecord.beginning.utf8)

    /// Reads the time at which the upload was complete from the end of the file.
    func received() throws -> Date {
        let beginning = UploadRecord.ending(of: id)
        let ending = #""}"#
        let count = beginning.utf8.count + UploadRecord.exampleTime.utf8.count + ending.utf8.count
        guard file.size >= count else { throw Self.damage }
        let text = String(buffer: try file.bytes(at: file.size - Int64(count), count: count))
        guard text.hasPrefix(beginning), text.hasSuffix(ending),
            let time = try? Date(String(text.dropFirst(beginning.count).dropLast(ending.count)), strategy: .iso8601)
        else { throw Self.damage }
        return time
    }

    /// The description of a file; `nil` if the record has no such file.
    func describedFile(_ index: Int) throws -> UploadRecord.File? {
        guard index >= 0 else { return nil }
        guard file.size > Self.smallBytes else {
            let files = try record().files
            return files.indices.contains(index) ? files[index] : nil
        }
        guard let range = try range(ofFile: index) else { return nil }
        let json = try file.bytes(at: range.lowerBound, count: range.count)
        let described = try JSONDecoder().decode(UploadRecord.File.self, from: Data(json.readableBytesView))
        try check(described, at: index)
        return described
    }

    private func check(_ file: UploadRecord.File, at index: Int) throws {
        guard file.size >= 0, file.url == UploadRecord.url(ofFile: index, of: id),
            UploadKey.isDigest(file.sha256)
        else { throw StoreDamage("The description of file \(index) is not as it was written.") }
    }

    // MARK: - Offsets of file descriptions

    static let offsetsName = "record.offsets"

    /// Encodes the offsets of ``UploadRecord/writeJSON(_:)`` as big-endian 64-bit integers; `nil` for a small record,
    /// which is always decoded and needs no offsets.
    static func offsetsFile(_ offsets: [Int64], recordBytes: Int64) -> [UInt8]? {
        guard recordBytes > smallBytes else { return nil }
        return offsets.flatMap { offset in withUnsafeBytes(of: offset.bigEndian) { Array($0) } }
    }

    /// The range of a file's description in the record; `nil` if the record has no such file.
    private func range(ofFile index: Int) throws -> Range<Int64>? {
        let path = file.path.removingLastComponent().appending(Self.offsetsName)
        guard let file = try LocalFile(path) else { throw StoreDamage("The file \(Self.offsetsName) is missing.") }
        let width = Int64(MemoryLayout<Int64>.size)
        guard file.size >= width, file.size % width == 0 else {
            throw StoreDamage("The file \(Self.offsetsName) has \(file.size) bytes.")
        }
        guard Int64(index) < file.size / width - 1 else { return nil }
        var bytes = try file.bytes(at: Int64(index) * width, count: 2 * Int(width))
        guard let start = bytes.readInteger(as: Int64.self), let next = bytes.readInteger(as: Int64.self),
            start > 0, start < next, next <= self.file.size, next - start <= Self.maximumFileBytes
        else { throw StoreDamage("The file \(Self.offsetsName) has wrong offsets for file \(index).") }
        // The comma or bracket after the object is left out.
        return start..<next - 1
    }
}
