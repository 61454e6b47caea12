import Foundation
import Testing

@testable import PostcardReceiver

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
