#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// How long the processor has worked for this process, the kernel's share included.
enum ProcessorTime {
    /// What some work takes.
    static func measure(_ work: () throws -> Void) rethrows -> Duration {
        let before = now
        try work()
        return now - before
    }

    private static var now: Duration {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
    }
}
