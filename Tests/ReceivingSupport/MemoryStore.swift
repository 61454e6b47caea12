import Crypto
import Foundation
import NIOCore
import PostcardStore

/// A store of another kind than the local one, which an article shows: it keeps the promises by an actor, and its "disk"
/// survives it.
///
/// It is not `package`, because the article shows its code as it is: tests import it with `@testable`.
struct MemoryStore: UploadStore {
    /// What outlives the store.
    actor Disk {
        private var records: [UploadID: (record: UploadRecord, contents: [ByteBuffer], key: UploadKey?)] = [:]
        private let source = UploadIDSource(after: [])

        func identifiers(limit: Int, after id: UploadID?) -> [UploadID] {
            Array(records.keys.filter { key in id.map { key < $0 } ?? true }.sorted(by: >).prefix(limit))
        }

        func record(_ id: UploadID) -> UploadRecord? { records[id]?.record }

        func content(_ index: Int, of id: UploadID) -> ByteBuffer? {
            guard let contents = records[id]?.contents, contents.indices.contains(index) else { return nil }
            return contents[index]
        }

        func delete(_ id: UploadID) -> Bool { records.removeValue(forKey: id) != nil }

        func commit(
            _ contents: [ByteBuffer], _ key: UploadKey?, describe: @Sendable (UploadID, Date) -> UploadRecord
        ) throws -> CommittedUpload {
            if let key, let first = records.values.first(where: { $0.key == key })?.record {
                let repeated = describe(first.id, first.received)
                guard repeated.fields == first.fields, repeated.files == first.files else {
                    throw UploadStoreError.keyReused
                }
                return CommittedUpload(first, isRepetition: true)
            }
            let (id, time) = source.next()
            let record = describe(id, time)
            records[id] = (record, contents, key)
            return CommittedUpload(record)
        }
    }

    final class Upload: PendingUpload {
        private let disk: Disk
        private let key: UploadKey?
        private var heads: [UploadRecord.FileHeader] = []
        private var contents: [ByteBuffer] = []

        init(_ disk: Disk, _ key: UploadKey?) {
            self.disk = disk
            self.key = key
        }

        func beginFile(_ file: UploadRecord.FileHeader) async throws {
            heads.append(file)
            contents.append(ByteBuffer())
        }

        func write(_ bytes: ByteBuffer) async throws { contents[contents.count - 1].writeImmutableBuffer(bytes) }

        func endFile() async throws {}

        func finishedFiles() async throws -> [FinishedFile] {
            zip(heads, contents).map { head, content in
                FinishedFile(
                    name: head.name, filename: head.filename, contentType: head.contentType,
                    sha256: MemoryStore.digest(content), content: File(content: content), path: nil)
            }
        }

        func commit(
            fields: [UploadRecord.Field], parts: [UploadRecord.Part]
        ) async throws -> CommittedUpload {
            try await disk.commit(contents, key) { [heads, contents] id, time in
                let files = zip(heads, contents).enumerated().map { index, file in
                    UploadRecord.File(
                        file.0, size: Int64(file.1.readableBytes), sha256: MemoryStore.digest(file.1), at: index, of: id
                    )
                }
                return UploadRecord(
                    id: id, received: time, fields: fields, files: files,
                    parts: parts)
            }
        }

        func discard() async { contents = [] }
    }

    struct File: StoredFile {
        let content: ByteBuffer

        var size: Int64 { Int64(content.readableBytes) }

        func read(at offset: Int64, count: Int) async throws -> ByteBuffer {
            ByteBuffer(bytes: content.readableBytesView.dropFirst(Int(offset)).prefix(count))
        }
    }

    let disk: Disk

    static func digest(_ content: ByteBuffer) -> String {
        SHA256.hash(data: Array(content.readableBytesView)).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
            .joined()
    }

    func beginUpload(under key: UploadKey?, announcedBytes: Int64?) async throws -> sending Upload {
        Upload(disk, key)
    }

    func identifiers(limit: Int, after id: UploadID?) async throws -> [UploadID] {
        await disk.identifiers(limit: limit, after: id)
    }

    func record(_ id: UploadID) async throws -> UploadRecord? { await disk.record(id) }

    func openFile(_ index: Int, of id: UploadID) async throws -> (any StoredFile)? {
        await disk.content(index, of: id).map(File.init)
    }

    func delete(_ id: UploadID) async throws -> Bool { await disk.delete(id) }
}
