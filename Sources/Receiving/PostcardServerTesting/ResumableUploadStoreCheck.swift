import NIOCore
import PostcardFoundation
public import PostcardStore

/// Checks the promises of a `ResumableUploadStore` about unfinished uploads, for the tests of your own store.
///
/// ```swift
/// @Test(arguments: ResumableUploadStoreCheck.allCases)
/// func `the store keeps its promises about unfinished uploads`(check: ResumableUploadStoreCheck) async throws {
///     let bucket = try await Bucket.temporary()
///     try await check.run { try await BucketStore(bucket) }
/// }
/// ```
public enum ResumableUploadStoreCheck: String, Sendable, CaseIterable {
    /// The facts about an unfinished upload survive a restart.
    case factsSurviveReopening
    /// Appended bytes survive a restart.
    case bytesSurviveReopening
    /// Bytes appended in pieces of any size are stored in order, without gaps.
    case appendedBytesFollowEachOther
    /// Reverted bytes are gone.
    case revertedBytesAreGone
    /// Revertible bytes are kept if they are not reverted.
    case bytesThatCouldBeRevertedAreKept
    /// All requests for an upload share one object and its lock.
    case callersShareAnUpload
    /// An expired upload is not found.
    case expiredUploadIsGone
    /// A discarded upload is gone, even after a restart.
    case discardedUploadIsGone
    /// The response replaces the bytes of the upload, and survives a restart.
    case responseReplacesTheBytes
    /// A response is forgotten when its record is deleted.
    case responseIsForgottenWithItsRecord
    /// No response is kept if the options keep none.
    case noResponseIsKeptIfNoneMayBe

    /// Runs the check with a new store.
    ///
    /// - Parameter open: Opens the store. The store must be empty when it is first opened. Further calls open the same
    ///   store again, as after a restart. The previous object is released before.
    /// - Throws: ``UploadStoreViolation`` if the store breaks the promise, and the errors of the store.
    public func run<Store: ResumableUploadStore>(opening open: () async throws -> Store) async throws {
        let checks = UnfinishedUploadChecks(check: rawValue)
        switch self {
        case .factsSurviveReopening: try await checks.factsSurviveReopening(open)
        case .bytesSurviveReopening: try await checks.bytesSurviveReopening(open)
        case .appendedBytesFollowEachOther: try await checks.appendedBytesFollowEachOther(try await open())
        case .revertedBytesAreGone: try await checks.revertedBytesAreGone(open)
        case .bytesThatCouldBeRevertedAreKept: try await checks.bytesThatCouldBeRevertedAreKept(open)
        case .callersShareAnUpload: try await checks.callersShareAnUpload(try await open())
        case .expiredUploadIsGone: try await checks.expiredUploadIsGone(try await open())
        case .discardedUploadIsGone: try await checks.discardedUploadIsGone(open)
        case .responseReplacesTheBytes: try await checks.responseReplacesTheBytes(open)
        case .responseIsForgottenWithItsRecord: try await checks.responseIsForgottenWithItsRecord(try await open())
        case .noResponseIsKeptIfNoneMayBe: try await checks.noResponseIsKeptIfNoneMayBe(try await open())
        }
    }
}

struct UnfinishedUploadChecks {
    let check: String

    private func expect(_ condition: Bool, _ message: @autoclosure () -> String) throws(UploadStoreViolation) {
        guard condition else { throw UploadStoreViolation(check: check, message: message()) }
    }

    private func unwrap<Value>(
        _ value: Value?, _ message: @autoclosure () -> String
    ) throws(UploadStoreViolation) -> Value {
        guard let value else { throw UploadStoreViolation(check: check, message: message()) }
        return value
    }

    private static let form = UnfinishedForm(
        contentType: "multipart/form-data; boundary=\"가\"", key: UploadKey("key", scope: ""), length: nil,
        reprDigest: "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:", wantReprDigest: "sha-256=1")

    private func identifier(_ character: Character = "0") throws -> ResumptionID {
        try unwrap(ResumptionID(String(repeating: character, count: 32)), "This is no identifier.")
    }

    private func create<Store: ResumableUploadStore>(
        _ id: ResumptionID, in store: Store, lifetime: Double = 3600
    ) async throws -> Store.Unfinished {
        let upload = try await store.createUnfinishedUpload(
            id, of: Self.form, expires: Date(timeIntervalSinceNow: lifetime))
        // The lock of a new upload is taken and released here, as by the request that creates an upload.
        await upload.lock.withLock {}
        return upload
    }

    private func find<Store: ResumableUploadStore>(
        _ id: ResumptionID, in store: Store
    ) async throws -> Store.Unfinished {
        try unwrap(try await store.unfinishedUpload(id), "An unfinished upload is not found.")
    }

    private static func bytes(_ count: Int, from start: Int = 0) -> ByteBuffer {
        ByteBuffer(bytes: (start..<start + count).map { UInt8(truncatingIfNeeded: ($0 &* 31) ^ ($0 >> 8)) })
    }

    private func append(
        _ bytes: ByteBuffer, to upload: some UnfinishedUpload, pieceBytes: Int = 100_000, isRevertible: Bool = false
    ) async throws {
        var appender = try await upload.makeAppender(isRevertible: isRevertible)
        var rest = bytes
        while let piece = rest.readSlice(length: min(pieceBytes, rest.readableBytes)), piece.readableBytes > 0 {
            try await appender.append(piece)
        }
        try await appender.finish()
    }

    private func expectContent(_ count: Int, of upload: some UnfinishedUpload) async throws {
        let progress = try await upload.durableProgress()
        try expect(
            progress == .unfinished(offset: Int64(count)), "With \(count) bytes the progress is \(progress).")
        try expect(upload.progress == progress, "The progress without a request is another one.")
        let file = try await upload.openContent()
        try expect(file.size == Int64(count), "Of \(count) bytes the content has \(file.size).")
        var read = ByteBuffer()
        while read.readableBytes < count {
            var piece = try await file.read(at: Int64(read.readableBytes), count: 256 << 10)
            try expect(piece.readableBytes > 0, "The content ends at \(read.readableBytes) of \(count) bytes.")
            read.writeBuffer(&piece)
        }
        try expect(read == Self.bytes(count), "The content is not what was appended.")
    }

    // MARK: - Checks

    func factsSurviveReopening<Store: ResumableUploadStore>(_ open: () async throws -> Store) async throws {
        let id = try identifier()
        let expires: Date
        do {
            let upload = try await create(id, in: open())
            expires = upload.expires
            try await upload.setLength(12_345)
            try expect(upload.form.length == 12_345, "The length that a request said is not kept.")
        }
        let upload = try await find(id, in: open())
        // Some stores know the length only after they were asked for the progress.
        _ = try await upload.durableProgress()
        var form = Self.form
        form.length = 12_345
        try expect(upload.form == form, "After the restart the form is \(upload.form).")
        try expect(abs(upload.expires.timeIntervalSince(expires)) < 1, "After the restart it expires otherwise.")
        try expect(upload.lock.isIdle, "After the restart a request seems to use the upload.")
        try await expectContent(0, of: upload)
    }

    func bytesSurviveReopening<Store: ResumableUploadStore>(_ open: () async throws -> Store) async throws {
        let id = try identifier()
        do {
            let upload = try await create(id, in: open())
            try await append(Self.bytes(1000), to: upload)
            _ = try await upload.durableProgress()
        }
        do {
            let upload = try await find(id, in: open())
            try await expectContent(1000, of: upload)
            try await append(Self.bytes(300_000, from: 1000), to: upload)
            _ = try await upload.durableProgress()
        }
        try await expectContent(301_000, of: find(id, in: open()))
    }

    func appendedBytesFollowEachOther(_ store: some ResumableUploadStore) async throws {
        let upload = try await create(identifier(), in: store)
        var count = 0
        for (size, pieceBytes) in [(1, 1), (0, 1), (99, 7), (20_000_000, 1_000_000), (300_000, 300_000)] {
            try await append(Self.bytes(size, from: count), to: upload, pieceBytes: pieceBytes)
            count += size
            let progress = try await upload.durableProgress()
            try expect(progress == .unfinished(offset: Int64(count)), "With \(count) bytes it is \(progress).")
        }
        // An appender may be finished several times.
        var appender = try await upload.makeAppender(isRevertible: false)
        for _ in 0..<3 {
            try await appender.append(Self.bytes(10, from: count))
            try await appender.finish()
            count += 10
            try expect(appender.offset == Int64(count), "An appender is at \(appender.offset) of \(count).")
        }
        try await expectContent(count, of: upload)
    }

    func revertedBytesAreGone<Store: ResumableUploadStore>(_ open: () async throws -> Store) async throws {
        let id = try identifier()
        do {
            let upload = try await create(id, in: open())
            try await append(Self.bytes(1000), to: upload)
            for count in [0, 10, 9_000_000] {
                var appender = try await upload.makeAppender(isRevertible: true)
                try await appender.append(ByteBuffer(repeating: 0, count: count))
                try await appender.revert()
                try expect(appender.offset == 1000, "After a revert an appender is at \(appender.offset) of 1000.")
                try await expectContent(1000, of: upload)
            }
            try await append(Self.bytes(10, from: 1000), to: upload)
            _ = try await upload.durableProgress()
        }
        try await expectContent(1010, of: find(id, in: open()))
    }

    func bytesThatCouldBeRevertedAreKept<Store: ResumableUploadStore>(_ open: () async throws -> Store) async throws {
        let id = try identifier()
        var count = 0
        do {
            let upload = try await create(id, in: open())
            for size in [10, 70_000, 0, 9_000_000, 500, 1_000_000] {
                try await append(Self.bytes(size, from: count), to: upload, isRevertible: true)
                count += size
                let progress = try await upload.durableProgress()
                try expect(progress == .unfinished(offset: Int64(count)), "With \(count) bytes it is \(progress).")
            }
        }
        try await expectContent(count, of: find(id, in: open()))
    }

    func callersShareAnUpload(_ store: some ResumableUploadStore) async throws {
        let upload = try await create(identifier(), in: store)
        let found = try await find(upload.id, in: store)
        try expect(upload.lock === found.lock, "Two requests for an upload have two locks.")
        try await append(Self.bytes(10), to: found)
        try await expectContent(10, of: upload)
        let other = try await store.unfinishedUpload(identifier("1"))
        try expect(other == nil, "There is an upload of an identifier that was not created.")
    }

    func expiredUploadIsGone(_ store: some ResumableUploadStore) async throws {
        let upload = try await create(identifier(), in: store, lifetime: -1)
        let found = try await store.unfinishedUpload(upload.id)
        try expect(found == nil, "An upload that has expired is found.")
    }

    func discardedUploadIsGone<Store: ResumableUploadStore>(_ open: () async throws -> Store) async throws {
        let id = try identifier()
        do {
            let store = try await open()
            let upload = try await create(id, in: store)
            try await append(Self.bytes(100_000), to: upload)
            try await upload.discard()
            try expect(upload.progress == .gone, "A discarded upload is \(upload.progress).")
            let progress = try await upload.durableProgress()
            try expect(progress == .gone, "A discarded upload is \(progress).")
            try await upload.discard()
        }
        let found = try await open().unfinishedUpload(id)
        try expect(found == nil, "A discarded upload is found after the restart.")
    }

    private func response(_ record: UploadID?) throws -> FinalResponse {
        let text = record.map { "\"\($0.text)\"" } ?? "null"
        let json =
            #"{"status":201,"fields":[{"name":"Location","value":"/uploads"}],"body":"6rCA","length":1000,"record":\#(text)}"#
        return try JSONDecoder().decode(FinalResponse.self, from: Data(json.utf8))
    }

    func responseReplacesTheBytes<Store: ResumableUploadStore>(_ open: () async throws -> Store) async throws {
        let id = try identifier()
        let response = try response(nil)
        do {
            let upload = try await create(id, in: open())
            try await append(Self.bytes(1000), to: upload)
            try await upload.finish(with: response, options: UnfinishedUploadOptions())
            try expect(
                upload.progress == .finished(length: 1000, record: nil), "A finished upload is \(upload.progress).")
        }
        let upload = try await find(id, in: open())
        let progress = try await upload.durableProgress()
        try expect(progress == .finished(length: 1000, record: nil), "A finished upload is \(progress).")
        let kept = try await upload.response()
        try expect(kept == response, "The response that is kept is another one.")
    }

    func responseIsForgottenWithItsRecord(_ store: some ResumableUploadStore) async throws {
        let pending = try await store.beginUpload(under: nil, announcedBytes: nil)
        let record = try await pending.commit(fields: [], parts: []).record.id
        let upload = try await create(identifier(), in: store)
        try await append(Self.bytes(1000), to: upload)
        try await upload.finish(with: response(record), options: UnfinishedUploadOptions())
        let progress = try await upload.durableProgress()
        try expect(progress == .finished(length: 1000, record: record), "A finished upload is \(progress).")
        _ = try await store.delete(record)
        guard let found = try await store.unfinishedUpload(upload.id) else { return }
        let later = try await found.durableProgress()
        try expect(later == .gone, "With its record deleted an upload is \(later).")
    }

    func noResponseIsKeptIfNoneMayBe(_ store: some ResumableUploadStore) async throws {
        let upload = try await create(identifier(), in: store)
        var options = UnfinishedUploadOptions()
        options.maximumKeptResponses = 0
        try await upload.finish(with: response(nil), options: options)
        guard let found = try await store.unfinishedUpload(upload.id) else { return }
        let progress = try await found.durableProgress()
        try expect(progress == .gone, "With no response kept an upload is \(progress).")
    }
}
