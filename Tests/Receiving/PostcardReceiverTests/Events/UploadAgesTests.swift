import Foundation
import PostcardServer
import PostcardTestSupport
import Testing

@testable import PostcardReceiver

private func id(_ seconds: Int64) -> UploadID { UploadID(earliestAt: seconds * 1000) }

@Suite struct MeasuredAgesTests {
    /// What happens, in seconds.
    private enum Event {
        /// A look, with the time of the newest identifier, the machine's clock and the uptime; and the times of identifiers
        /// that are too old and that are not, if there are such.
        case look(newest: Int64?, wall: Double, uptime: Double, old: Int64?, young: Int64?)
        /// The receiver ends, and another one begins.
        case restart
    }

    /// The maximum age is 1,000 seconds.
    private static let histories: [(name: String, events: [Event])] = [
        (
            "a clock that is right",
            [
                .look(newest: 5000, wall: 5000, uptime: 0, old: nil, young: 5000),
                .look(newest: 5600, wall: 5600, uptime: 600, old: nil, young: 5000),
                .look(newest: 5600, wall: 5999, uptime: 999, old: nil, young: 5000),
                .look(newest: 5600, wall: 6000, uptime: 1000, old: 5000, young: 5001),
                .look(newest: 5600, wall: 6600, uptime: 1600, old: 5600, young: nil),
            ]
        ),
        (
            "one that was behind, and is set right",
            [
                .look(newest: 5000, wall: 5000, uptime: 0, old: nil, young: 5000),
                .look(newest: 5000, wall: 900_000, uptime: 100, old: nil, young: 5000),
                .look(newest: 900_500, wall: 900_600, uptime: 700, old: nil, young: 5000),
                .look(newest: 900_500, wall: 900_900, uptime: 1000, old: 5000, young: 900_500),
            ]
        ),
        (
            "one that jumps ahead and back, again and again",
            [
                .look(newest: 5000, wall: 5000, uptime: 0, old: nil, young: 5000),
                .look(newest: 5000, wall: 900_000, uptime: 100, old: nil, young: 5000),
                .look(newest: 5000, wall: 5200, uptime: 200, old: nil, young: 5000),
                .look(newest: 5000, wall: 900_000, uptime: 300, old: nil, young: 5000),
                .look(newest: 5000, wall: 5999, uptime: 999, old: nil, young: 5000),
                .look(newest: 5000, wall: 6000, uptime: 1000, old: 5000, young: nil),
            ]
        ),
        (
            "one that was set right between two runs: a tenth of the age counts",
            [
                .look(newest: 5000, wall: 5000, uptime: 0, old: nil, young: 5000),
                .look(newest: 5000, wall: 5100, uptime: 100, old: nil, young: 5000), .restart,
                .look(newest: 5000, wall: 900_000, uptime: 0, old: nil, young: 5000),
                .look(newest: 5000, wall: 900_799, uptime: 799, old: nil, young: 5000),
                .look(newest: 5000, wall: 900_800, uptime: 800, old: 5000, young: nil),
            ]
        ),
        (
            "one that was set back between two runs",
            [
                .look(newest: 5000, wall: 5000, uptime: 50, old: nil, young: 5000), .restart,
                .look(newest: 5000, wall: 10, uptime: 0, old: nil, young: 5000),
                .look(newest: 5000, wall: 1009, uptime: 999, old: nil, young: 5000),
                .look(newest: 5000, wall: 1010, uptime: 1000, old: 5000, young: nil),
            ]
        ),
        (
            "a short pause between two runs counts whole",
            [
                .look(newest: 5000, wall: 5000, uptime: 0, old: nil, young: 5000), .restart,
                .look(newest: 5000, wall: 5060, uptime: 0, old: nil, young: 5000),
                .look(newest: 5000, wall: 5999, uptime: 939, old: nil, young: 5000),
                .look(newest: 5000, wall: 6000, uptime: 940, old: 5000, young: nil),
            ]
        ),
        (
            "the newest upload was deleted, and later ones have smaller identifiers",
            [
                .look(newest: 5000, wall: 5000, uptime: 0, old: nil, young: 5000), .restart,
                .look(newest: 400, wall: 500, uptime: 0, old: nil, young: 400),
                .look(newest: 600, wall: 1500, uptime: 1000, old: 400, young: 401),
                .look(newest: 600, wall: 2499, uptime: 1999, old: 400, young: 600),
                .look(newest: 600, wall: 2500, uptime: 2000, old: 600, young: nil),
            ]
        ),
        (
            "everything was deleted",
            [
                .look(newest: 5000, wall: 5000, uptime: 0, old: nil, young: 5000), .restart,
                .look(newest: nil, wall: 500, uptime: 0, old: nil, young: 1),
                .look(newest: 600, wall: 600, uptime: 100, old: nil, young: 600),
                .look(newest: 600, wall: 1599, uptime: 1099, old: nil, young: 600),
                .look(newest: 600, wall: 1600, uptime: 1100, old: 600, young: nil),
            ]
        ),
    ]

    @Test(arguments: histories.indices)
    func `only time that has certainly passed makes an upload old`(index: Int) throws {
        let (name, events) = Self.histories[index]
        var ages = MeasuredAges(wall: Date(timeIntervalSince1970: 5000))
        for event in events {
            switch event {
            case .restart: ages = try JSONDecoder().decode(MeasuredAges.self, from: JSONEncoder().encode(ages))
            case .look(let newest, let wall, let uptime, let old, let young):
                _ = ages.look(
                    at: newest.map(id), wall: Date(timeIntervalSince1970: wall), uptime: .seconds(uptime),
                    maximumAge: 1000)
                let end = ages.end(ofOlderThan: 1000)
                #expect(end.map { $0 > id(old ?? 0) } == old.map { _ in true }, "\(name): \(event)")
                if let end, let young { #expect(end <= id(young), "\(name): \(event)") }
            }
        }
    }

    @Test func `no upload is removed too early or more than a hundredth of the age too late, however the clock jumps`()
    {
        var random = SeededGenerator(seed: 11)
        for _ in 0..<100 {
            var ages = MeasuredAges(wall: Date(timeIntervalSince1970: 0))
            var (uptime, wall, newest) = (0.0, 0.0, Int64(0))
            // When each identifier was made.
            var made: [Int64: Double] = [:]
            for _ in 0..<1000 {
                let step = Double.random(in: 1..<5, using: &random)
                uptime += step
                wall += step
                if Int.random(in: 0..<50, using: &random) == 0 { wall += .random(in: -5000..<5000, using: &random) }
                newest = max(newest + 1, Int64(max(wall, 0)))
                made[newest] = uptime
                _ = ages.look(
                    at: id(newest), wall: Date(timeIntervalSince1970: wall), uptime: .seconds(uptime), maximumAge: 500)
                let end = ages.end(ofOlderThan: 500)
                for (number, time) in made {
                    let isOld = end.map { id(number) < $0 } ?? false
                    if isOld { #expect(uptime - time >= 499.99) } else { #expect(uptime - time <= 506) }
                    if isOld { made[number] = nil }
                }
            }
        }
    }

    @Test func `what is kept for the next run stays small`() throws {
        var ages = MeasuredAges(wall: Date(timeIntervalSince1970: 0))
        var count = 0
        for second in 0..<5000 {
            let isDue = ages.look(
                at: id(Int64(second)), wall: Date(timeIntervalSince1970: Double(second)), uptime: .seconds(second),
                maximumAge: 2000)
            if isDue { count += 1 }
        }
        #expect(count == 2500)
        #expect(try JSONEncoder().encode(ages).count < 100_000)
    }
}
