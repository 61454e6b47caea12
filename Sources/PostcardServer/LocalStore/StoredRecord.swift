import NIOCore
import PostcardFiles

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The file with a record's JSON. A record can have tens of megabytes, and a request needs a few of its bytes, or all
/// of them as they are, so only small records are decoded. Every call blocks, and throws if the file is damaged.
struct StoredRecord {
    let id: UploadID
    let file: LocalFile

    /// The file is not as it was written.
    struct Damage: Error, CustomStringConvertible {
        let description = "The file is not a record, or not all of one."
    }

    /// Records up to this size are decoded whole.
    private static let smallBytes: Int64 = 64 << 10

    /// Decodes the record.
    func record() throws -> UploadRecord { try UploadRecord(json: file.data()) }

    /// Checks that the file is a whole record: a small one by decoding it, a larger one by its beginning and its end.
    func check() throws {
        guard file.size > Self.smallBytes else {
            _ = try record()
            return
        }
        let beginning = Array(#"{"fields":["#.utf8)
        let ending = UploadRecord.ending(of: id) + UploadRecord.exampleTime + #""}"#
        let last = try file.bytes(at: file.size - Int64(ending.utf8.count), count: ending.utf8.count)
        let text = String(buffer: last)
        guard try file.bytes(at: 0, count: beginning.count).readableBytesView.elementsEqual(beginning),
            text.hasPrefix(UploadRecord.ending(of: id)), text.hasSuffix(#""}"#)
        else { throw Damage() }
    }

    /// The description of a file; `nil` if the record has no such file.
    func describedFile(_ index: Int) throws -> UploadRecord.File? {
        // Counting down from a negative number could overflow.
        guard index >= 0 else { return nil }
        guard file.size > Self.smallBytes else {
            let files = try record().files
            return files.indices.contains(index) ? files[index] : nil
        }
        var search = FileSearch(index: index)
        var offset: Int64 = 0
        while offset < file.size {
            let piece = try file.bytes(at: offset, count: LocalFile.pieceBytes)
            guard piece.readableBytes > 0 else { break }
            offset += Int64(piece.readableBytes)
            switch piece.withUnsafeReadableBytes({ search.read($0) }) {
            case .found(let json): return try JSONDecoder().decode(UploadRecord.File.self, from: json)
            case .missing: return nil
            case .reading: continue
            }
        }
        throw Damage()
    }
}

/// Finds the JSON of one file in a record's, as ``UploadRecord/json()`` writes it.
private struct FileSearch {
    enum Result {
        case reading
        case found(Data)
        case missing
    }

    private enum State {
        case inFields
        case betweenFiles
        /// In a file's object, which holds no other object.
        case inFile
        case inString(isEscaped: Bool)
    }

    private let marker = Array(UploadRecord.beginningOfFiles.utf8)
    private var state = State.inFields
    /// How many bytes of the marker were read last.
    private var matched = 0
    private var remaining: Int
    private var json = Data()

    init(index: Int) {
        remaining = index
    }

    mutating func read(_ bytes: UnsafeRawBufferPointer) -> Result {
        var rest = bytes[...]
        if case .inFields = state { rest = bytes[skipFields(bytes)...] }
        for byte in rest {
            if remaining == 0 { json.append(byte) }
            switch (state, byte) {
            case (.betweenFiles, UInt8(ascii: "{")):
                state = .inFile
                if remaining == 0 { json = Data([byte]) }
            case (.betweenFiles, UInt8(ascii: "]")):
                return .missing
            case (.inFile, UInt8(ascii: "\"")), (.inString(true), _):
                state = .inString(isEscaped: false)
            case (.inFile, UInt8(ascii: "}")):
                if remaining == 0 { return .found(json) }
                remaining -= 1
                state = .betweenFiles
            case (.inString(false), UInt8(ascii: "\\")):
                state = .inString(isEscaped: true)
            case (.inString(false), UInt8(ascii: "\"")):
                state = .inFile
            default: break
            }
        }
        return .reading
    }

    /// Looks for the list of files: the marker's first byte is not in it again.
    ///
    /// - Returns: Where the list begins; the end of the bytes if it does not.
    private mutating func skipFields(_ bytes: UnsafeRawBufferPointer) -> Int {
        var index = 0
        while index < bytes.count, matched < marker.count {
            let byte = bytes[index]
            // Almost all bytes are the text's.
            if matched > 0 || byte == 0x5D {
                matched = byte == marker[matched] ? matched + 1 : byte == marker[0] ? 1 : 0
            }
            index += 1
        }
        if matched == marker.count { state = .betweenFiles }
        return index
    }
}
