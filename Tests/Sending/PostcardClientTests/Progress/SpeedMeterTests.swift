import Testing

@testable import PostcardClient

@Suite struct SpeedMeterTests {
    private let start = ContinuousClock.now

    @Test func `the speed is that of the last seconds`() {
        var meter = SpeedMeter()
        #expect(meter.bytesPerSecond == nil)
        for second in 0...10 { meter.add(Int64(second * 100), at: start + .seconds(second)) }
        #expect(meter.bytesPerSecond == 100)
        for second in 11...20 { meter.add(Int64(1000 + (second - 10) * 500), at: start + .seconds(second)) }
        #expect(meter.bytesPerSecond == 500)
    }

    @Test func `the time left is that of the rest at this speed`() {
        var meter = SpeedMeter()
        #expect(meter.timeRemaining(for: 100) == nil)
        #expect(meter.timeRemaining(for: 0) == .zero)
        for second in 0...2 { meter.add(Int64(second * 100), at: start + .seconds(second)) }
        #expect(meter.timeRemaining(for: 450) == .seconds(4.5))
        #expect(meter.timeRemaining(for: .max) == nil)
    }

    @Test func `an upload that does not move has no remaining time`() {
        var meter = SpeedMeter()
        for second in 0...9 { meter.add(700, at: start + .seconds(second)) }
        #expect(meter.bytesPerSecond == 0)
        #expect(meter.timeRemaining(for: 1) == nil)
    }

    @Test func `many steps at one moment count as one`() {
        var meter = SpeedMeter()
        for step in 0..<100_000 { meter.add(Int64(step), at: start + .microseconds(step * 20)) }
        let speed = meter.bytesPerSecond ?? 0
        #expect(speed > 49_000 && speed < 51_000)
    }
}
