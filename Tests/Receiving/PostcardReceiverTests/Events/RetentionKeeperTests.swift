import Foundation
import Logging
import NIOCore
import PostcardReceivingSupport
import PostcardServer
import PostcardTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import PostcardReceiver

@Suite(.timeLimit(.minutes(10)))
struct RetentionKeeperTests {
    /// Stores an upload of one file.
    private static func upload(_ count: Int, to store: LocalUploadStore) async throws -> UploadID {
        let upload = try await store.beginUpload(under: nil, announcedBytes: nil)
        try await upload.beginFile(UploadRecord.FileHeader(name: "f", filename: "f.bin", contentType: "a/b"))
        try await upload.write(ByteBuffer(repeating: 7, count: count))
        try await upload.endFile()
        return try await upload.commit(fields: [], parts: [.file(0)]).record.id
    }

    private static func withStore(
        _ policy: RetentionPolicy, _ body: (LocalUploadStore, RetentionKeeper, UploadMeter) async throws -> Void
    ) async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let meter = UploadMeter()
            try await body(store, keeper(of: store, policy, meter), meter)
        }
    }

    private static func keeper(
        of store: some MaintainedUploadStore, _ policy: RetentionPolicy, _ meter: UploadMeter = UploadMeter(),
        _ clock: TestClock = TestClock()
    ) -> RetentionKeeper {
        RetentionKeeper(
            of: store, by: policy, meter: meter, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            now: { clock.time.withLock { $0 } })
    }

    /// The machine's clock, and the time that has passed.
    private final class TestClock: Sendable {
        let time = Mutex<(wall: Date, uptime: Duration)>((Date(), .zero))

        func pass(days: Double) {
            time.withLock { time in
                time.wall.addTimeInterval(days * 86400)
                time.uptime += .seconds(days * 86400)
            }
        }

        func setClock(ahead days: Double) { time.withLock { $0.wall.addTimeInterval(days * 86400) } }
    }

    private static let month: RetentionPolicy = {
        var policy = RetentionPolicy()
        policy.maximumAge = .seconds(30 * 86400)
        return policy
    }()

    private static let days: [(days: Double, isKept: Bool)] = [(0, true), (29.9, true), (30.1, false), (4000, false)]

    @Test(arguments: days) func `an upload is removed once it is too old`(days: Double, isKept: Bool) async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let (clock, meter) = (TestClock(), UploadMeter())
            let keeper = Self.keeper(of: store, Self.month, meter, clock)
            let upload = try await Self.upload(10, to: store)
            var ages: UploadAges?
            var ledger = RetentionLedger()
            await keeper.removeOld(&ages, &ledger)
            clock.pass(days: days)
            await keeper.removeOld(&ages, &ledger)
            #expect(try await (store.record(upload) != nil) == isKept)
            #expect(meter.current.removed == (isKept ? 0 : 1))
        }
    }

    @Test func `an upload of a clock that was 400 days behind is kept as long as others, over a restart too`()
        async throws
    {
        try await withTemporaryDirectory { directory in
            let clock = TestClock()
            clock.setClock(ahead: -400)
            var upload: UploadID?
            do {
                let store = try LocalUploadStore(directory: directory)
                let keeper = Self.keeper(of: store, Self.month, UploadMeter(), clock)
                var ages: UploadAges?
                var ledger = RetentionLedger()
                await keeper.removeOld(&ages, &ledger)
                // Its identifier is that of the machine's time, which is 400 days behind for the keeper.
                let first = try await Self.upload(10, to: store)
                upload = first
                clock.pass(days: 1)
                await keeper.removeOld(&ages, &ledger)
                clock.setClock(ahead: 400)
                for _ in 0..<3 {
                    clock.pass(days: 1)
                    await keeper.removeOld(&ages, &ledger)
                }
                #expect(try await store.record(first) != nil)
            }
            // Nothing shows that no time has passed, so a tenth of the age counts.
            clock.setClock(ahead: 400)
            let store = try LocalUploadStore(directory: directory)
            let keeper = Self.keeper(of: store, Self.month, UploadMeter(), clock)
            let first = try #require(upload)
            var ages: UploadAges?
            var ledger = RetentionLedger()
            for (days, isKept) in [(0, true), (23, true), (1.1, false)] as [(Double, Bool)] {
                clock.pass(days: days)
                await keeper.removeOld(&ages, &ledger)
                #expect(try await (store.record(first) != nil) == isKept, "\(days)")
            }
        }
    }

    @Test func `ages that are damaged start over`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            try Data("{".utf8).write(to: URL(filePath: directory.appending(".ages").string))
            let clock = TestClock()
            let keeper = Self.keeper(of: store, Self.month, UploadMeter(), clock)
            let upload = try await Self.upload(10, to: store)
            var ages: UploadAges?
            var ledger = RetentionLedger()
            for (days, isKept) in [(0, true), (29, true), (2, false)] as [(Double, Bool)] {
                clock.pass(days: days)
                await keeper.removeOld(&ages, &ledger)
                #expect(try await (store.record(upload) != nil) == isKept, "\(days)")
            }
        }
    }

    @Test func `a clock that is a year ahead at the start removes nothing elsewhere for an hour`() async throws {
        try await withTemporaryDirectory { directory in
            let local = try LocalUploadStore(directory: directory)
            let clock = TestClock()
            clock.setClock(ahead: 365)
            let keeper = Self.keeper(of: StubbornStore(local), Self.month, UploadMeter(), clock)
            let upload = try await Self.upload(10, to: local)
            var ages: UploadAges?
            var ledger = RetentionLedger()
            for (seconds, isKept) in [(0, true), (3500, true), (101, false)] as [(Double, Bool)] {
                clock.pass(days: seconds / 86400)
                await keeper.removeOld(&ages, &ledger)
                #expect(try await (local.record(upload) != nil) == isKept, "\(seconds)")
            }
        }
    }

    @Test func `more uploads than a page of the listing are removed`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let (clock, meter) = (TestClock(), UploadMeter())
            let keeper = Self.keeper(of: store, Self.month, meter, clock)
            for _ in 0..<1003 {
                _ = try await store.beginUpload(under: nil, announcedBytes: nil).commit(fields: [], parts: [])
            }
            var ages: UploadAges?
            var ledger = RetentionLedger()
            await keeper.removeOld(&ages, &ledger)
            clock.pass(days: 31)
            await keeper.removeOld(&ages, &ledger)
            #expect(try await store.identifiers(limit: 10, after: nil).isEmpty)
            #expect(meter.current.removed == 1003)
        }
    }

    @Test func `uploads that were there before the start count`() async throws {
        var policy = RetentionPolicy()
        policy.maximumBytes = 250_000
        try await Self.withStore(policy) { store, keeper, meter in
            var uploads: [UploadID] = []
            for _ in 0..<4 { uploads.append(try await Self.upload(100_000, to: store)) }
            var ledger = RetentionLedger()
            await keeper.learnSizes(&ledger)
            #expect(ledger.totalBytes >= 400_000)
            await keeper.removeExcess(&ledger)
            #expect(try await store.identifiers(limit: 10, after: nil) == [uploads[3], uploads[2]])
            #expect(meter.current.removed == 2)
            // One that a client has deleted in the meantime leaves room.
            _ = try await store.delete(uploads[2])
            let newest = try await Self.upload(100_000, to: store)
            await keeper.learnSizes(&ledger)
            await keeper.removeExcess(&ledger)
            #expect(try await store.identifiers(limit: 10, after: nil) == [newest, uploads[3]])
        }
    }

    @Test func `nothing is removed for uploads that are gone, also if they are noted late`() async throws {
        var policy = RetentionPolicy()
        policy.maximumBytes = 250_000
        try await Self.withStore(policy) { store, keeper, meter in
            let uploads = [try await Self.upload(100_000, to: store), try await Self.upload(100_000, to: store)]
            let gone = try await Self.upload(100_000, to: store)
            var ledger = RetentionLedger()
            await keeper.learnSizes(&ledger)
            _ = try await store.delete(gone)
            // The deletion is noted before the request that brought the upload has ended.
            ledger.remove(gone)
            ledger.insert(recorded: gone, bytes: 100_000)
            await keeper.removeExcess(&ledger)
            #expect(try await store.identifiers(limit: 10, after: nil) == uploads.reversed())
            #expect(ledger.totalBytes < 250_000)
            #expect(meter.current.removed == 0)
        }
    }

    @Test(arguments: [RetentionPolicy.Reason.age, .quota])
    func `uploads that cannot be removed do not keep the others`(reason: RetentionPolicy.Reason) async throws {
        try await withTemporaryDirectory { directory in
            let local = try LocalUploadStore(directory: directory)
            let store = StubbornStore(local)
            var policy = RetentionPolicy()
            if reason == .age { policy.maximumAge = .seconds(1) } else { policy.maximumBytes = 0 }
            let clock = TestClock()
            let keeper = Self.keeper(of: store, policy, UploadMeter(), clock)
            var uploads: [UploadID] = []
            for _ in 0..<12 { uploads.append(try await Self.upload(10, to: local)) }
            clock.pass(days: 1)
            var ages: UploadAges? = .dated(RetentionClock(since: keeper.now().wall, uptime: keeper.now().uptime))
            var ledger = RetentionLedger()
            func round() async -> Int {
                let before = store.stubborn.tries.withLock { $0 }
                await keeper.removeOld(&ages, &ledger)
                await keeper.learnSizes(&ledger)
                await keeper.retryExcess(&ledger)
                await keeper.removeExcess(&ledger)
                return store.stubborn.tries.withLock { $0 } - before
            }
            // The oldest, and one among the others.
            let stubborn = Set(uploads.prefix(4) + [uploads[6]])
            store.stubborn.ids.withLock { $0 = stubborn }
            for _ in 0..<3 { #expect(await round() <= 6) }
            var rest = stubborn
            if reason == .quota { rest.insert(uploads[11]) }
            #expect(Set(try await store.identifiers(limit: 100, after: nil)) == rest)
            store.stubborn.ids.withLock { $0 = [] }
            _ = await round()
            #expect(try await store.identifiers(limit: 100, after: nil).count == (reason == .quota ? 1 : 0))
            #expect(ledger.failed.isEmpty)
        }
    }

    @Test(arguments: [false, true])
    func `many sizes are listed at once if the store can, and each is right`(canList: Bool) async throws {
        try await withTemporaryDirectory { directory in
            let local = try LocalUploadStore(directory: directory)
            let store = StubbornStore(local)
            var policy = RetentionPolicy()
            policy.maximumBytes = .max
            let keeper = Self.keeper(of: store, policy)
            let count = RetentionKeeper.fewUploads + 1
            var sizes: [UploadID: Int64] = [:]
            for _ in 0..<count {
                let upload = try await Self.upload(10, to: local)
                sizes[upload] = 1000
            }
            // One was stored after the listing.
            _ = sizes.popFirst()
            if canList { store.stubborn.sizes.withLock { [sizes] in $0 = sizes } }
            var ledger = RetentionLedger()
            await keeper.learnSizes(&ledger)
            #expect(ledger.count == count)
            #expect(store.stubborn.reads.withLock { $0 } == (canList ? 1 : count))
            if canList { #expect(ledger.totalBytes > 1000 * Int128(count - 1)) }
        }
    }

    @Test func `an upload that is deleted at the same time is removed once`() async throws {
        var policy = RetentionPolicy()
        policy.maximumBytes = 0
        try await Self.withStore(policy) { store, keeper, meter in
            for round in 0..<50 {
                let doomed = try await Self.upload(10, to: store)
                _ = try await Self.upload(10, to: store)
                let before = meter.current.removed
                var ledger = RetentionLedger()
                await keeper.learnSizes(&ledger)
                async let isDeleted = store.delete(doomed)
                await keeper.removeExcess(&ledger)
                let byClient = try await isDeleted ? 1 : 0
                #expect(try await store.record(doomed) == nil)
                #expect(ledger.count == 1)
                // And the newest one of the round before.
                #expect(meter.current.removed - before + byClient == (round == 0 ? 1 : 2))
            }
        }
    }

    @Test func `a file that is open is read to its end after its upload was removed`() async throws {
        var policy = RetentionPolicy()
        policy.maximumBytes = 0
        try await Self.withStore(policy) { store, keeper, _ in
            let upload = try await Self.upload(3_000_000, to: store)
            let file = try #require(try await store.openFile(0, of: upload))
            _ = try await Self.upload(1, to: store)
            var ledger = RetentionLedger()
            await keeper.learnSizes(&ledger)
            await keeper.removeExcess(&ledger)
            #expect(try await store.record(upload) == nil)
            #expect(try await file.read(at: 2_000_000, count: 2_000_000).readableBytes == 1_000_000)
        }
    }
}
