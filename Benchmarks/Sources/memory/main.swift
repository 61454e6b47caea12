#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

// Without arguments the program runs itself once per hostile body, because a process never lowers its recorded peak.
if CommandLine.arguments.count > 1 {
    try HostileBody.named(CommandLine.arguments[1]).measure()
} else {
    let isFree = try AllocationCheck.run()
    let isSmall = try HostileBody.measureEachInAProcess()
    if !isFree || !isSmall {
        print("\nFAILED")
        exit(1)
    }
}
