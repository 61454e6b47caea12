import Foundation
import Logging
import NIOCore
import PostcardServer
import PostcardTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import PostcardReceiver

private func id(_ seconds: Int64) -> UploadID { UploadID(earliestAt: seconds * 1000) }

@Suite struct RetentionClockTests {
    /// What the machine's clock shows, the time that has passed, and the time that is believed, in seconds.
    private typealias Reading = (wall: Double, uptime: Double, time: Double)

    /// Each begins with the time of the newest upload.
    private static let histories: [(name: String, newest: Double, readings: [Reading])] = [
        ("a clock that is right", 1000, [(1000, 0, 1000), (1060, 60, 1060), (91_000, 90_000, 91_000)]),
        ("one that is corrected by a little", 1000, [(1000, 0, 1000), (1119, 60, 1119), (1120, 120, 1120)]),
        (
            "one that jumps forward, and is corrected", 1000,
            [(1000, 0, 1000), (900_000, 60, 1060), (900_600, 660, 1660), (1720, 720, 1720), (1780, 780, 1780)]
        ),
        (
            "one that jumps forward for good", 1000,
            [(1000, 0, 1000), (900_000, 60, 1060), (903_599, 3659, 4659), (903_600, 3660, 903_600)]
        ),
        (
            "one that jumps twice, and is never believed in between", 1000,
            [(1000, 0, 1000), (900_000, 60, 1060), (1120, 120, 1120), (900_000, 180, 1180), (903_540, 3720, 4720)]
        ),
        ("one that is set back", 100_000, [(100_000, 0, 100_000), (50_000, 60, 50_000), (53_600, 3660, 53_600)]),
        ("one that stands still while the machine sleeps", 1000, [(1000, 0, 1000), (1000, 9000, 1000)]),
        (
            "one that is ahead at the start, and is corrected", 1000,
            [(900_000, 0, 1000), (900_060, 60, 1060), (903_000, 3000, 4000), (4001, 3001, 4001), (4061, 3061, 4061)]
        ),
        (
            "one that is right, after a long pause", 1000,
            [(900_000, 0, 1000), (903_599, 3599, 4599), (903_600, 3600, 903_600)]
        ),
        ("one that is behind the newest upload", 1000, [(500, 0, 500), (560, 60, 560)]),
    ]

    @Test(arguments: histories.indices) func `time that is not sure removes nothing`(index: Int) {
        let (name, newest, readings) = Self.histories[index]
        var clock = RetentionClock(
            since: Date(timeIntervalSince1970: newest), uptime: .seconds(readings[0].uptime))
        for reading in readings {
            let time = clock.time(
                wall: Date(timeIntervalSince1970: reading.wall), uptime: .seconds(reading.uptime))
            #expect(time.timeIntervalSince1970 == reading.time, "\(name): \(reading)")
        }
    }
}

@Suite struct RetentionLedgerTests {
    /// Sizes from the oldest upload to the newest, the limit, and how many of the oldest exceed it.
    private static let cases: [(sizes: [Int64], maximum: Int64, excess: Int)] = [
        ([], 0, 0), ([5], 0, 0), ([5, 5], 10, 0), ([5, 5], 9, 1), ([5, 5, 5], 9, 2), ([1, 9, 1], 9, 2),
        ([9, 1, 1], 9, 1), ([5, 20], 10, 1), ([0, 0, 5], 4, 2), ([.max, .max, .max], .max, 2),
        ([.max, 1], .max, 1), ([1, 1, 1, 1], 3, 1),
    ]

    @Test(arguments: cases) func `the oldest exceed a limit, and never the newest`(
        sizes: [Int64], maximum: Int64, excess: Int
    ) {
        var ledger = RetentionLedger()
        // In another order than their own.
        for index in sizes.indices.reversed() { ledger.insert(id(Int64(index)), bytes: sizes[index]) }
        #expect(ledger.excess(over: maximum) == (0..<excess).map { id(Int64($0)) })
    }

    @Test func `a ledger agrees with what it was told, in any order`() {
        var random = SeededGenerator(seed: 7)
        for _ in 0..<200 {
            var ledger = RetentionLedger()
            var model: [UploadID: Int64] = [:]
            for _ in 0..<60 {
                let upload = id(.random(in: 0..<20, using: &random))
                switch Int.random(in: 0..<5, using: &random) {
                case 0, 1:
                    let bytes = Int64.random(in: 0..<100, using: &random)
                    ledger.insert(upload, bytes: bytes)
                    if model[upload] == nil { model[upload] = bytes }
                case 2:
                    ledger.remove(upload)
                    model[upload] = nil
                case 3:
                    // A listing has lost some, and others are new.
                    var listed = Set(model.keys.filter { _ in Bool.random(using: &random) })
                    listed.insert(upload)
                    let unknown = ledger.reconcile(with: listed.sorted(by: >))
                    #expect(unknown == listed.filter { model[$0] == nil }.sorted())
                    model = model.filter { listed.contains($0.key) }
                default:
                    let maximum = Int64.random(in: 0..<1000, using: &random)
                    let excess = ledger.excess(over: maximum)
                    let kept = model.keys.sorted().dropFirst(excess.count)
                    #expect(excess == Array(model.keys.sorted().prefix(excess.count)))
                    #expect(kept.count <= 1 || kept.reduce(0) { $0 + (model[$1] ?? 0) } <= maximum)
                }
                #expect(ledger.count == model.count)
                #expect(ledger.totalBytes == model.values.reduce(0) { $0 + Int128($1) })
            }
        }
    }
}

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

@Suite(.timeLimit(.minutes(10)))
struct RetentionReceiverTests {
    @Test func `the request of an upload that makes room for another is not shown any more`() async throws {
        try await withReceiver {
            $0.retention = RetentionPolicy()
            $0.retention?.maximumBytes = 150_000
        } _: { receiver in
            let form = Form.fileHeader + String(repeating: "x", count: 100_000) + Form.end
            let first = try await receiver.exchange(Form.request(body: form))
            let id = try #require(first.headers["location"]?.split(separator: "/").last)
            #expect(try await receiver.curl("\(receiver.url)/requests").text.contains(id))
            #expect(try await receiver.exchange(Form.request(body: form)).status == 201)
            try await eventually { try await !receiver.curl("\(receiver.url)/requests").text.contains(id) }
        }
    }

    @Test func `a download goes on while its upload makes room for another`() async throws {
        let log = CapturedLog.Lines()
        try await withReceiver {
            $0.retention = RetentionPolicy()
            $0.retention?.maximumBytes = 9_000_000
            $0.logger = Logger(label: "test") { _ in CapturedLog(lines: log) }
        } _: { receiver in
            let large = String(repeating: "x", count: 8_000_000)
            let form = Form.fileHeader + large + Form.end
            let first = try await receiver.exchange(Form.request(body: form))
            let path = try #require(first.headers["location"])
            let download = try await onThread {
                let socket = try RawSocket(port: receiver.port)
                try socket.send("GET \(path)/files/0 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                return (socket, try socket.receive(upTo: 1000))
            }
            #expect(String(decoding: download.1, as: UTF8.self).hasPrefix("HTTP/1.1 200"))
            let second = try await receiver.exchange(Form.request(body: form))
            #expect(second.status == 201)
            try await eventually {
                try await receiver.curl("-o", "/dev/null", "-w", "%{http_code}", receiver.url + path).text == "404"
            }
            let rest = try await download.0.receiveAll()
            let response = String(decoding: download.1 + rest, as: UTF8.self)
            #expect(response.components(separatedBy: "\r\n\r\n").last == large)
            try await eventually {
                try await receiver.metrics()[#"postcard_uploads_removed_total{reason="quota"}"#] == 1
            }
            #expect(try await receiver.metrics()["postcard_stored_bytes"].map { 8_000_000..<8_100_000 ~= $0 } == true)
            let removed = log.all.filter { $0["reason"] == "quota" }
            #expect(removed.map { $0["upload"] } == [.string(String(path.split(separator: "/").last ?? ""))])
        }
    }

    @Test func `listeners learn that an upload was removed`() async throws {
        try await withReceiver {
            $0.retention = RetentionPolicy()
            $0.retention?.maximumBytes = 1
        } _: { receiver in
            let socket = try await onThread {
                let socket = try RawSocket(port: receiver.port)
                try socket.send("GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
                _ = try socket.receive(until: ": listening\n\n")
                return socket
            }
            let first = try await receiver.exchange(Form.request(body: Form.small))
            _ = try await receiver.exchange(Form.request(body: Form.small))
            let events = try await socket.receive(until: "event: deleted")
            #expect(events.contains("event: uploaded"))
            #expect(first.status == 201)
        }
    }
}
