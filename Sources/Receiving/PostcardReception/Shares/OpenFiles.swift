import PostcardCLibrary
import NIOCore

/// How many files and connections the process may have open.
package enum OpenFiles {
    #if canImport(Glibc)
    private static var resource: __rlimit_resource_t { __rlimit_resource_t(RLIMIT_NOFILE.rawValue) }
    #else
    private static var resource: Int32 { RLIMIT_NOFILE }
    #endif

    /// Raises the limit to what the system allows. Many systems start with 1,024 or fewer, for programs that cannot
    /// handle more.
    package static func allowAsManyAsPossible() {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return }
        #if canImport(Darwin)
        // rlim_max may be infinite, and setrlimit refuses more than OPEN_MAX.
        limit.rlim_cur = min(limit.rlim_max, rlim_t(OPEN_MAX))
        #else
        limit.rlim_cur = limit.rlim_max
        #endif
        // If this fails, the server accepts fewer connections.
        _ = setrlimit(resource, &limit)
    }

    /// The current limit of the process.
    private static var maximum: Int {
        var limit = rlimit()
        // More than a million is as good as no limit.
        return getrlimit(resource, &limit) == 0 ? Int(min(limit.rlim_cur, 1 << 20)) : 1024
    }

    /// The number of files that the receiver itself needs: three for each event loop, and some for the rest.
    static let reserve = 64 + 3 * System.coreCount

    /// The maximum number of connections that leaves one file for each, and some for the receiver itself.
    package static var maximumConnections: Int { max((maximum - reserve) / 2, 8) }

    /// - Parameter connections: How many connections the receiver shall have.
    /// - Returns: As many of them as leave descriptors for the receiver itself and for some requests: without any left,
    ///   libdispatch may end the process.
    package static func allowed(_ connections: Int) -> Int { allowed(connections, of: maximum) }

    /// - Parameter maximum: How many files and connections the process may have open.
    static func allowed(_ connections: Int, of maximum: Int) -> Int { min(connections, max(maximum - reserve - 8, 8)) }

    /// How many files the requests of this many connections may have open together.
    package static func forRequests(connections: Int) -> Int { forRequests(connections: connections, of: maximum) }

    /// - Parameter maximum: How many files and connections the process may have open.
    static func forRequests(connections: Int, of maximum: Int) -> Int { max(maximum - reserve - connections, 8) }
}
