#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// How many files and connections the process may have open.
package enum OpenFiles {
    #if canImport(Glibc)
    private static var resource: __rlimit_resource_t { __rlimit_resource_t(RLIMIT_NOFILE.rawValue) }
    #else
    private static var resource: Int32 { RLIMIT_NOFILE }
    #endif

    /// Goes up to what the system allows. Many systems begin with 1,024 or fewer, for programs that cannot take more.
    package static func allowAsManyAsPossible() {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return }
        #if canImport(Darwin)
        // There rlim_max may be infinite, and setrlimit refuses more than OPEN_MAX.
        limit.rlim_cur = min(limit.rlim_max, rlim_t(OPEN_MAX))
        #else
        limit.rlim_cur = limit.rlim_max
        #endif
        // Where it is not allowed, fewer connections are taken.
        _ = setrlimit(resource, &limit)
    }

    /// The most that the process may have open now.
    private static var maximum: Int {
        var limit = rlimit()
        // More than a million is as good as no limit.
        return getrlimit(resource, &limit) == 0 ? Int(min(limit.rlim_cur, 1 << 20)) : 1024
    }

    /// The most connections that leave room for one file each and for what a receiver has open of its own.
    package static var maximumConnections: Int { max((maximum - 64) / 2, 8) }
}
