import PostcardCLibrary
import Synchronization
import UnixSignals

/// Lets work remove its temporary files before a signal ends the program.
enum Interruption {
    /// Does some work. After SIGINT or SIGTERM it is cancelled, and once it has ended, the program ends by that signal.
    /// A second signal ends the program at once. A signal that is ignored, as of a job in the background, stays so.
    ///
    /// - Parameters:
    ///   - isNeeded: Whether the work has temporary files. If not, signals end the program as usual.
    ///   - work: The work.
    static func ending<Result: Sendable>(
        ifNeeded isNeeded: Bool, _ work: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        guard isNeeded else { return try await work() }
        let caught = Mutex<CInt?>(nil)
        let trapped: [UnixSignal] = [.sigint, .sigterm].filter { !isIgnored($0.rawValue) }
        let signals = await UnixSignalsSequence(trapping: trapped)
        let task = Task { try await work() }
        let watch = Task {
            for await signal in signals {
                let isFirst = caught.withLock { caught in
                    defer { caught = signal.rawValue }
                    return caught == nil
                }
                if !isFirst { endProgram(by: signal.rawValue) }
                task.cancel()
            }
        }
        let result = await task.result
        watch.cancel()
        if let number = caught.withLock({ $0 }) { endProgram(by: number) }
        for signal in trapped { restore(signal.rawValue) }
        return try result.get()
    }

    private static func isIgnored(_ number: CInt) -> Bool {
        let handler = signal(number, SIG_IGN)
        signal(number, handler)
        return unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// Lets a signal end the program again.
    private static func restore(_ number: CInt) {
        signal(number, SIG_DFL)
        var unblocked = sigset_t()
        sigemptyset(&unblocked)
        sigaddset(&unblocked, number)
        pthread_sigmask(SIG_UNBLOCK, &unblocked, nil)
    }

    /// Ends the program as the signal would, so that a shell sees why it ended.
    private static func endProgram(by number: CInt) -> Never {
        restore(number)
        raise(number)
        _exit(128 + number)
    }
}
