import PostcardCLibrary
import SystemPackage

/// Returns the memory that the process has freed to the system. The C library of Linux keeps much of it otherwise: what
/// one burst of forms took would stay taken.
enum FreedMemory {
    #if canImport(Glibc)
    /// Blocks of at least this size are memory of their own, which freeing returns. By default, the C library raises this
    /// limit to the size of any block that is freed, up to 32 MiB.
    private static let ownBytes: CInt = 128 << 10
    private static let interval = Duration.seconds(2)
    /// The memory of a process that has little to return.
    private static let usualBytes = 24 << 20
    /// Within this much processor time since the last call, little can have been freed.
    private static let idleTime = Duration.milliseconds(5)

    /// Returns smaller blocks too, from time to time, until the task is cancelled.
    static func keepReturning() async {
        // malloc.h is not in the module of the C library.
        if let function = dlsym(nil, "mallopt") {
            let mallopt = unsafeBitCast(function, to: (@convention(c) (CInt, CInt) -> CInt).self)
            let mmapThreshold: CInt = -3
            _ = mallopt(mmapThreshold, ownBytes)
        }
        guard let function = dlsym(nil, "malloc_trim") else { return }
        let trim = unsafeBitCast(function, to: (@convention(c) (Int) -> CInt).self)
        var trimmed = processorTime
        while !Task.isCancelled {
            try? await Task.sleep(for: interval)
            guard processorTime - trimmed > idleTime, ownResidentBytes ?? 0 > usualBytes else { continue }
            _ = trim(0)
            trimmed = processorTime
        }
    }

    /// The processor time that the process has used.
    private static var processorTime: Duration { .microseconds(clock()) }

    /// The memory that the process takes now, without that of files, such as its code; `nil` if the system does not say.
    private static var ownResidentBytes: Int? {
        guard let file = try? FileDescriptor.open("/proc/self/statm", .readOnly, options: [.closeOnExec]) else {
            return nil
        }
        var bytes = [UInt8](repeating: 0, count: 128)
        let count = try? file.closeAfter { try bytes.withUnsafeMutableBytes { try file.read(into: $0) } }
        // In pages: the size, what is resident, and what of that is shared.
        let numbers = String(decoding: bytes.prefix(count ?? 0), as: UTF8.self).split(separator: " ").prefix(3)
        let pages = numbers.compactMap { Int($0) }
        return pages.count == 3 ? (pages[1] - pages[2]) * Int(sysconf(CInt(_SC_PAGESIZE))) : nil
    }
    #else
    static func keepReturning() async {}
    #endif
}
