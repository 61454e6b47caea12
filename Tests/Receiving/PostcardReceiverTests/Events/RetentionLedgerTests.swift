import PostcardServer
import PostcardTestSupport
import Testing

@testable import PostcardReceiver

private func id(_ seconds: Int64) -> UploadID { UploadID(earliestAt: seconds * 1000) }

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
