import Foundation
import PostcardTestSupport
import Testing

@testable import PostcardPictures

@Suite struct PictureFitTests {
    @Test func `a picture that fits at once is encoded once, with the best quality`() {
        let search = SimulatedPicture(edge: 2560, bytesAtBest: 900_000).search(maximumBytes: 1_000_000)
        #expect(search.next == .finished(.init(edge: 2560, quality: 82)))
        #expect(search.tries.count == 1)
    }

    @Test(arguments: [(2560, 1_400_000), (2560, 1_900_000), (4096, 1_500_000), (1000, 1_600_000), (300, 1_700_000)])
    func `quality is lowered before the edge`(edge: Int, bytesAtBest: Int64) throws {
        let search = SimulatedPicture(edge: edge, bytesAtBest: bytesAtBest).search(maximumBytes: 1_000_000)
        let best = try #require(search.best)
        #expect(search.next == .finished(best.encoding))
        #expect(best.encoding.edge == edge)
        #expect(best.encoding.quality < 82 && best.encoding.quality >= 50)
        #expect(best.bytes > 900_000)
    }

    @Test func `the edge is lowered if quality 50 is not enough`() throws {
        let search = SimulatedPicture(edge: 2560, bytesAtBest: 4_000_000).search(maximumBytes: 1_000_000)
        let best = try #require(search.best)
        #expect(best.encoding.edge < 2560 && best.encoding.edge >= 1280)
        #expect(search.tries.count <= 4)
    }

    @Test(arguments: [
        (2560, [2560, 2048, 1600, 1280, 1024, 800, 640]), (2600, [2600, 2048, 1600, 1280, 1024, 800, 640]),
        (2049, [2049, 1600, 1280, 1024, 800, 640]),
        (6000, [6000, 5120, 4096, 3200, 2560, 2048, 1600, 1280, 1024, 800, 640]),
        (800, [800, 640]), (650, [650, 640]), (640, [640]), (300, [300]), (1, [1]),
    ])
    func `edges get shorter in the usual steps, down to 640 pixels, and never longer`(edge: Int, edges: [Int]) {
        #expect(PictureFit(edge: edge, maximumBytes: 1).edges == edges)
    }

    @Test func `what does not fit at 640 pixels and quality 50 is impossible, and it was tried`() {
        let search = SimulatedPicture(edge: 2560, bytesAtBest: 9_000_000).search(maximumBytes: 10_000)
        #expect(search.next == .impossible)
        #expect(search.tries.last?.encoding == .init(edge: 640, quality: 50))
        #expect(search.tries.count <= 3)
    }

    @Test func `a limit below the headers is impossible`() {
        for limit in [Int64(-1), 0, 1, 500] {
            let search = SimulatedPicture(edge: 100, bytesAtBest: 900).search(maximumBytes: limit)
            #expect(search.next == .impossible)
        }
    }

    /// For any picture whose bytes fall with the quality and the edge.
    @Test func `six encodings find nearly the best for pictures of every kind`() {
        var random = SeededGenerator(seed: 7)
        var (pictures, encodings, worse, lost) = (0, 0, 0, 0)
        for _ in 0..<20_000 {
            let picture = SimulatedPicture(random: &random)
            let limit = Int64(Double(picture.bytesAtBest) * exp(random.next(in: log(0.02)...log(1.1))))
            let search = picture.search(maximumBytes: limit)
            #expect(search.tries.count <= 6)
            #expect(Set(search.tries.map(\.encoding)).count == search.tries.count, "nothing is tried twice")
            #expect(
                search.tries.allSatisfy {
                    PictureFit.qualities.contains($0.encoding.quality) && search.edges.contains($0.encoding.edge)
                })
            guard let ideal = picture.ideal(maximumBytes: limit) else {
                #expect(search.next == .impossible)
                continue
            }
            guard let best = search.best else {
                Issue.record("\(picture) fits \(limit) bytes with \(ideal), which was not found: \(search.tries)")
                continue
            }
            #expect(search.next == .finished(best.encoding))
            #expect(best.bytes <= limit)
            (pictures, encodings) = (pictures + 1, encodings + search.tries.count)
            if best.encoding.edge < ideal.edge { lost += 1 }
            let isClose = best.bytes >= limit * 93 / 100 || best.encoding.quality >= ideal.quality - 1
            if best.encoding.edge == ideal.edge, !isClose { worse += 1 }
            #expect(best.encoding.edge * 2 > ideal.edge)
        }
        #expect(lost * 100 < pictures, "\(lost) of \(pictures) are an edge smaller than they could be")
        #expect(worse * 100 < pictures, "\(worse) of \(pictures) are much worse than they could be")
        #expect(Double(encodings) < Double(pictures) * 3.2)
    }
}

/// A picture whose bytes follow a formula.
private struct SimulatedPicture {
    let edge: Int
    let bytesAtBest: Int64
    /// How fast bytes fall with the quantization's step, and with the edge.
    var stepPower = 0.65
    var edgePower = 1.7
    /// How much steeper it gets towards low qualities.
    var bend = 0.0

    init(edge: Int, bytesAtBest: Int64) {
        self.edge = edge
        self.bytesAtBest = bytesAtBest
    }

    init(random: inout SeededGenerator) {
        edge = Int(exp(random.next(in: log(1)...log(6000))))
        bytesAtBest = Int64(Double(edge * edge) * exp(random.next(in: log(0.02)...log(1.5)))) + 700
        stepPower = random.next(in: 0.4...0.95)
        edgePower = random.next(in: 1.2...2.1)
        bend = random.next(in: -0.15...0.15)
    }

    func bytes(_ encoding: PictureFit.Encoding) -> Int64 {
        let step = log((200 - 2 * Double(encoding.quality)) / 36)
        let shorter = log(Double(encoding.edge) / Double(edge))
        let size = log(Double(max(bytesAtBest - 600, 1))) - stepPower * step - bend * step * step + edgePower * shorter
        return 600 + Int64(exp(size))
    }

    func search(maximumBytes: Int64) -> PictureFit {
        var search = PictureFit(edge: edge, maximumBytes: maximumBytes)
        for _ in 0..<10 {
            guard case .encode(let encoding) = search.next else { break }
            search.record(bytes(encoding), for: encoding)
        }
        return search
    }

    func ideal(maximumBytes: Int64) -> PictureFit.Encoding? {
        for edge in PictureFit(edge: edge, maximumBytes: maximumBytes).edges {
            let fitting = PictureFit.qualities.last { bytes(.init(edge: edge, quality: $0)) <= maximumBytes }
            if let fitting { return .init(edge: edge, quality: fitting) }
        }
        return nil
    }
}

extension SeededGenerator {
    fileprivate mutating func next(in range: ClosedRange<Double>) -> Double { Double.random(in: range, using: &self) }
}
