import Synchronization
import Testing

@testable import PostcardStore

/// The identifiers and keys that a store has in memory.
extension LocalUploadStoreTests {
    /// Nine identifiers, oldest first.
    private static func identifiers() throws -> [UploadID] {
        try (0..<9).map { number in try #require(UploadID("01kz5dr1c\(number)0123456789abcdef")) }
    }

    @Test
    func `identifiers are listed newest first, in whatever order they came and went`() throws {
        let ids = try Self.identifiers()
        let index = RecordIndex([])
        for number in [5, 2, 7, 2, 0, 8, 5, 1] { index.insert(ids[number]) }
        let newestFirst = [8, 7, 5, 2, 1, 0]
        #expect(index.newest(100, before: nil) == newestFirst.map { ids[$0] })
        for number in 0..<9 {
            #expect(index.contains(ids[number]) == newestFirst.contains(number))
            #expect(index.newest(100, before: ids[number]) == newestFirst.filter { $0 < number }.map { ids[$0] })
        }
        #expect(index.newest(2, before: ids[6]) == [ids[5], ids[2]])
        for limit in [0, -1] { #expect(index.newest(limit, before: nil).isEmpty) }
        // Some of them twice, and some that are not there.
        for number in [3, 8, 0, 8, 6, 5] { index.remove(ids[number]) }
        #expect(index.newest(100, before: nil) == [ids[7], ids[2], ids[1]])
        for id in ids { index.remove(id) }
        #expect(index.newest(100, before: nil).isEmpty)
    }

    @Test
    func `a key passes from an upload that failed to one that waits, until one has made its record`() async throws {
        let keys = KeyIndex([:])
        let key = UploadKey("key", scope: "")
        let id = try Self.identifiers()[0]
        let failures = Mutex(0)
        let outcomes = await withTaskGroup(of: String.self) { group in
            for _ in 0..<50 {
                group.addTask { @Sendable in
                    guard case .granted = await keys.claim(key) else { return "repeated" }
                    // Meanwhile the others come to wait.
                    for _ in 0..<100 { await Task.yield() }
                    let hasFailed = failures.withLock { count in
                        count += 1
                        return count <= 10
                    }
                    keys.settle(key, with: hasFailed ? nil : KeyedRecord(id: id, digest: ""))
                    return hasFailed ? "failed" : "made"
                }
            }
            return await group.reduce(into: [String: Int]()) { $0[$1, default: 0] += 1 }
        }
        #expect(outcomes == ["failed": 10, "made": 1, "repeated": 39])
        #expect(keys.record(under: key)?.id == id)
    }

    @Test
    func `forgetting a record frees its own key alone`() async throws {
        let ids = try Self.identifiers()
        let keys = (0..<3).map { UploadKey("\($0)", scope: "") }
        let records = ids.map { KeyedRecord(id: $0, digest: "") }
        let index = KeyIndex([keys[0].digest: records[0], keys[1].digest: records[1]])
        _ = await index.claim(keys[2])
        index.forget(ids[5])
        index.forget(ids[5], under: keys[1].digest)
        index.forget(ids[0])
        #expect(index.record(under: keys[0]) == nil)
        #expect(index.record(under: keys[1])?.id == ids[1])
        // The upload that makes a record of this key goes on.
        index.settle(keys[2], with: records[2])
        #expect(index.record(under: keys[2])?.id == ids[2])
    }
}
