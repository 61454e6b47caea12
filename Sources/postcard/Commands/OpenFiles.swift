#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// How many files and connections the process may have open.
enum OpenFiles {
    /// Goes up to what the system allows. Many systems begin with 1,024 or fewer, for programs that cannot take more.
    static func allowAsManyAsPossible() {
        #if canImport(Glibc)
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
        let resource = RLIMIT_NOFILE
        #endif
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
}
