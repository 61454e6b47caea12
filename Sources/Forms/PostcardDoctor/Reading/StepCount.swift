#if DEBUG
import Synchronization

/// Counts the bytes that are examined. Tests check that the count grows linearly with the input.
///
/// Unlike a time, the count does not depend on the machine. Release builds do not count.
package final class StepCount: Sendable {
    private let count = Atomic<Int>(0)

    /// The counter of the current task; `nil` if steps are not counted.
    @TaskLocal private static var current: StepCount?

    package static func of(_ body: () throws -> Void) rethrows -> Int {
        let counter = StepCount()
        try $current.withValue(counter) { try body() }
        return counter.count.load(ordering: .relaxed)
    }

    static func add(_ steps: Int) {
        current?.count.add(steps, ordering: .relaxed)
    }
}
#endif

/// Adds to the counter of the current task. Does nothing in release builds.
@inline(__always)
func countSteps(_ steps: @autoclosure () -> Int) {
    #if DEBUG
    StepCount.add(steps())
    #endif
}
