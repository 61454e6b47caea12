#if os(macOS) || os(Linux)
import Foundation
import PostcardCLibrary
import SystemPackage

/// Starts processes that inherit only the standard descriptors.
///
/// Foundation's `Process` waits for all processes that the program started, and keeps its pipes open even longer.
enum ProcessSpawn {
    /// Starts a program as the leader of its own process group. `arguments` are the program's path and its arguments.
    /// Its standard input is empty, its standard output is `output`, its standard error is that of this process, and
    /// its signals have the default effects. The call blocks. Throws `Errno` if the program cannot be started.
    static func start(
        _ arguments: [String], output: FileDescriptor, environment variables: [String: String]
    ) throws(Errno) -> pid_t {
        #if canImport(Darwin)
        var actions: posix_spawn_file_actions_t?
        var attributes: posix_spawnattr_t?
        #else
        var actions = posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        #endif
        try check(posix_spawn_file_actions_init(&actions))
        defer { posix_spawn_file_actions_destroy(&actions) }
        try check(posix_spawnattr_init(&attributes))
        defer { posix_spawnattr_destroy(&attributes) }
        // The output is duplicated first, because its descriptor may be 0 if the server's own standard input is closed.
        try check(posix_spawn_file_actions_adddup2(&actions, output.rawValue, 1))
        try check(posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0))
        var flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK
        // Libraries leave some descriptors open on exec, but a command must not inherit the server's sockets.
        #if canImport(Darwin)
        flags |= POSIX_SPAWN_CLOEXEC_DEFAULT
        try check(posix_spawn_file_actions_addinherit_np(&actions, 2))
        #else
        if let closeFrom {
            try check(closeFrom(&actions, 3))
        } else {
            for number in 3..<(try lowestUnusedDescriptor()) {
                try check(posix_spawn_file_actions_addclose(&actions, number))
            }
        }
        #endif
        try check(posix_spawnattr_setflags(&attributes, Int16(flags)))
        try check(posix_spawnattr_setpgroup(&attributes, 0))
        // Children would inherit the signals that this process ignores or blocks.
        var signals = sigset_t()
        sigemptyset(&signals)
        try check(posix_spawnattr_setsigmask(&attributes, &signals))
        sigfillset(&signals)
        for signal in [SIGKILL, SIGSTOP] { sigdelset(&signals, signal) }
        try check(posix_spawnattr_setsigdefault(&attributes, &signals))

        let words = CStrings(arguments)
        let environment = CStrings(variables.map { "\($0.key)=\($0.value)" })
        defer {
            words.free()
            environment.free()
        }
        var process: pid_t = 0
        try check(posix_spawn(&process, arguments[0], &actions, &attributes, words.pointers, environment.pointers))
        return process
    }

    #if !canImport(Darwin)
    /// Makes the new process close a descriptor and all higher ones, without using a descriptor of this process. The
    /// function is looked up at run time, because glibc before version 2.34 lacks it.
    private static let closeFrom = dlsym(nil, "posix_spawn_file_actions_addclosefrom_np").map { symbol in
        unsafeBitCast(
            symbol,
            to: (@convention(c) @Sendable (UnsafeMutablePointer<posix_spawn_file_actions_t>, Int32) -> Int32).self)
    }

    /// A number above all open descriptors, and above those that other threads may open before the program starts.
    /// Throws `Errno` if the open descriptors cannot be listed, because the program would then inherit them.
    private static func lowestUnusedDescriptor() throws(Errno) -> Int32 {
        let highest: Int32
        do {
            let names = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
            highest = names.lazy.compactMap { Int32($0) }.max() ?? 3
        } catch {
            // A number is only guessed on a system without /proc.
            guard (error as? CocoaError)?.code == .fileReadNoSuchFile else { throw .tooManyOpenFiles }
            highest = 4096
        }
        // Closing a number above the system's limit would be an error.
        let limit = Int32(clamping: sysconf(Int32(_SC_OPEN_MAX)))
        return max(min(highest + 256, limit), 3)
    }
    #endif

    private static func check(_ result: Int32) throws(Errno) {
        if result != 0 { throw Errno(rawValue: result) }
    }

    /// C strings, followed by a null pointer.
    private struct CStrings {
        let pointers: [UnsafeMutablePointer<CChar>?]

        init(_ strings: [String]) {
            pointers = strings.map { strdup($0) } + [nil]
        }

        func free() {
            for pointer in pointers { Foundation.free(pointer) }
        }
    }
}
#endif
