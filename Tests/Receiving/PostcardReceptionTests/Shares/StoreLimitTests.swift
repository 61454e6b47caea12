import Foundation
import HTTPTypes
import PostcardReceivingSupport
import PostcardTestSupport
import Testing

@testable import PostcardReception

@Suite struct StoreLimitTests {
    private static func limit(
        of maximum: Int64, patience: Duration = .zero
    ) -> (limit: StoreLimit, meter: UploadMeter) {
        let meter = UploadMeter()
        var limits = ShareLimits(clientShare: 0.25)
        limits[.excessBytes] = StoreLimit.tenth(of: maximum)
        let shares = ShareAccount(limits, meter: meter)
        return (StoreLimit(of: maximum, blockBytes: 1, shares: shares, patience: patience) {}, meter)
    }

    private static func record(_ bytes: Int64) -> UploadRecord {
        var generator = SystemRandomNumberGenerator()
        let id = UploadID(milliseconds: 1, using: &generator)
        let file = UploadRecord.File(
            name: "f", filename: "f", contentType: "a/b", size: bytes, sha256: "",
            url: UploadRecord.url(ofFile: 0, of: id))
        return UploadRecord(id: id, received: Date(), fields: [], files: [file])
    }

    private let greedy = TestPeers.all[0]
    private let honest = TestPeers.all[1]

    @Test func `a store that is a tenth over its limit takes a second tenth, by shares, until uploads are removed`()
        async throws
    {
        let (limit, meter) = Self.limit(of: 1_000_000)
        var isRefused = false
        var stored: Int128 = 0
        while !isRefused {
            do {
                let record = Self.record(10_000)
                try await limit.place(for: 10_300, files: 1, of: greedy).becomes(record)
                stored += Int128(record.storedBytes(inBlocksOf: 1))
            } catch let error as UploadProblem {
                #expect(error.status == .serviceUnavailable)
                #expect(error.code == "store-over-limit")
                #expect(error.retryAfterSeconds != nil)
                isRefused = true
            }
        }
        #expect(stored > 1_100_000 && stored < 1_140_000)
        #expect(throws: UploadProblem.self) { try limit.check(10_000, of: greedy) }
        for _ in 0..<2 {
            try limit.check(2000, of: honest)
            try await limit.place(for: 2300, files: 1, of: honest).becomes(Self.record(2000))
        }
        #expect(meter.current.refusals == ["store-over-limit": 2])
        // As if the oldest had been removed.
        limit.update { arrivals in
            #expect(arrivals.reduce(0) { $0 + Int128($1.bytes) } > stored)
            return (1_000_000, 10_000)
        }
        for _ in 0..<9 { try await limit.place(for: 10_000, files: 1, of: greedy).becomes(Self.record(9000)) }
    }

    @Test func `all addresses together never exceed the limit by more than a fifth and a form`() async {
        let (limit, _) = Self.limit(of: 1_000_000)
        var stored: Int128 = 0
        for peer in TestPeers.all {
            while let place = try? await limit.place(for: 5000, files: 1, of: peer) {
                let record = Self.record(4000)
                place.becomes(record)
                stored += Int128(record.storedBytes(inBlocksOf: 1))
            }
        }
        #expect(stored > 1_150_000 && stored <= 1_205_000)
    }

    @Test func `a form that does not become a record gives its place back`() async throws {
        let (limit, _) = Self.limit(of: 1_000_000)
        for _ in 0..<5 { _ = try await limit.place(for: 2_000_000, files: 1, of: greedy) }
        try limit.check(10_000, of: greedy)
        do {
            let place = try await limit.place(for: 2_000_000, files: 1, of: greedy)
            #expect(throws: UploadProblem.self) { try limit.check(200_000, of: greedy) }
            withExtendedLifetime(place) {}
        }
        try limit.check(200_000, of: greedy)
    }

    @Test func `one upload that is larger than the limit keeps no other from being stored`() async throws {
        let (limit, _) = Self.limit(of: 1_000_000)
        for _ in 0..<3 {
            try await limit.place(for: 5_000_000, files: 1, of: greedy).becomes(Self.record(5_000_000))
            // Those before the newest were removed.
            limit.update { arrivals in (Int128(arrivals[0].bytes), arrivals[0].bytes) }
        }
        try await limit.place(for: 10_000, files: 1, of: greedy).becomes(Self.record(10_000))
        await #expect(throws: UploadProblem.self) { try await limit.place(for: 200_000, files: 1, of: greedy) }
    }

    @Test func `a form that was received waits for older uploads to be removed`() async throws {
        let (limit, meter) = Self.limit(of: 1_000_000, patience: .seconds(300))
        try await limit.place(for: 1_200_000, files: 1, of: greedy).becomes(Self.record(900_000))
        try await limit.place(for: 300_000, files: 1, of: greedy).becomes(Self.record(300_000))
        async let waiting: Void = limit.place(for: 300_000, files: 1, of: greedy).becomes(Self.record(300_000))
        limit.update { _ in (900_000, 300_000) }
        try await waiting
        #expect(meter.current.refused == 0)
    }
}
