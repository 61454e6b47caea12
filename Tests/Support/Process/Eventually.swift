/// Waits for a condition that another thread or process will bring about.
///
/// The pauses keep the processor for whoever does so. The limit ends a test that would wait forever; it is so long that
/// no slow machine reaches it.
///
/// - Throws: ``NeverHappened`` after five minutes, and `CancellationError`.
package func eventually(_ condition: () async throws -> Bool) async throws {
    let clock = ContinuousClock()
    let deadline = clock.now + .seconds(300)
    var pause = Duration.microseconds(200)
    while try await !condition() {
        guard clock.now < deadline else { throw NeverHappened() }
        try await clock.sleep(for: pause)
        pause = min(pause * 2, .milliseconds(20))
    }
}

/// What a test waited for did not happen.
package struct NeverHappened: Error {}
