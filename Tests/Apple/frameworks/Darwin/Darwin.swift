// What the project's modules for apps use of Darwin's C library, with Darwin's types.
@_exported import DarwinTypes

public typealias pid_t = Int32
public var errno: Int32 {
    get { fatalError() }
    set { fatalError() }
}
public var EINTR: Int32 { 4 }
public var ENOENT: Int32 { 2 }
public var LOCK_SH: Int32 { 1 }
public var LOCK_EX: Int32 { 2 }
public var LOCK_NB: Int32 { 4 }
public var LOCK_UN: Int32 { 8 }
public var F_FULLFSYNC: Int32 { 51 }
@discardableResult public func flock(_ descriptor: Int32, _ operation: Int32) -> Int32 { fatalError() }
@discardableResult public func isatty(_ descriptor: Int32) -> Int32 { fatalError() }
@discardableResult public func fsync(_ descriptor: Int32) -> Int32 { fatalError() }
@discardableResult public func fcntl(_ descriptor: Int32, _ command: Int32) -> Int32 { fatalError() }
@discardableResult public func fcntl(_ descriptor: Int32, _ command: Int32, _ value: Int32) -> Int32 { fatalError() }
public var F_SETPROTECTIONCLASS: Int32 { 64 }
public func fclonefileat(
    _ source: Int32, _ directory: Int32, _ name: UnsafePointer<CChar>!, _ flags: UInt32
) -> Int32 { fatalError() }
@discardableResult public func rename(_ old: UnsafePointer<CChar>!, _ new: UnsafePointer<CChar>!) -> Int32 {
    fatalError()
}
public func strerror(_ number: Int32) -> UnsafeMutablePointer<CChar>! { fatalError() }
public func exit(_ status: Int32) -> Never { fatalError() }
public enum POSIXErrorCode: Int32, Sendable {
    case ECONNREFUSED = 61, EHOSTUNREACH = 65, ENETUNREACH = 51, ENETDOWN = 50, EHOSTDOWN = 64
}
public var O_RDONLY: Int32 { 0 }
public var O_WRONLY: Int32 { 1 }
public var O_RDWR: Int32 { 2 }
public var O_NONBLOCK: Int32 { 4 }
public var O_NOFOLLOW: Int32 { 0x100 }
public var O_CREAT: Int32 { 0x200 }
public var O_TRUNC: Int32 { 0x400 }
public var O_EXCL: Int32 { 0x800 }
public var O_DIRECTORY: Int32 { 0x100000 }
public var O_CLOEXEC: Int32 { 0x1000000 }
public var AT_FDCWD: Int32 { -2 }
public var AT_SYMLINK_NOFOLLOW: Int32 { 0x20 }
public var AT_REMOVEDIR: Int32 { 0x80 }
public var S_IFMT: mode_t { 0o170000 }
public var S_IFDIR: mode_t { 0o040000 }
public var S_IFREG: mode_t { 0o100000 }
public var S_IFLNK: mode_t { 0o120000 }
@discardableResult public func stat(_ path: UnsafePointer<CChar>!, _ information: UnsafeMutablePointer<stat>!) -> Int32
{ fatalError() }
@discardableResult public func lstat(_ path: UnsafePointer<CChar>!, _ information: UnsafeMutablePointer<stat>!) -> Int32
{ fatalError() }
@discardableResult public func fstat(_ descriptor: Int32, _ information: UnsafeMutablePointer<stat>!) -> Int32 {
    fatalError()
}
@discardableResult public func fstatat(
    _ folder: Int32, _ path: UnsafePointer<CChar>!, _ information: UnsafeMutablePointer<stat>!, _ flags: Int32
) -> Int32 { fatalError() }
// The overlay has Swift functions for those with `...` in C.
@discardableResult public func openat(_ folder: Int32, _ path: UnsafePointer<CChar>, _ flags: Int32) -> Int32 {
    fatalError()
}
@discardableResult public func openat(_ folder: Int32, _ path: UnsafePointer<CChar>, _ flags: Int32, _ mode: mode_t)
    -> Int32
{
    fatalError()
}
@discardableResult public func mkdir(_ path: UnsafePointer<CChar>!, _ mode: mode_t) -> Int32 { fatalError() }
@discardableResult public func mkdirat(_ folder: Int32, _ path: UnsafePointer<CChar>!, _ mode: mode_t) -> Int32 {
    fatalError()
}
@discardableResult public func unlink(_ path: UnsafePointer<CChar>!) -> Int32 { fatalError() }
@discardableResult public func unlinkat(_ folder: Int32, _ path: UnsafePointer<CChar>!, _ flags: Int32) -> Int32 {
    fatalError()
}
@discardableResult public func rmdir(_ path: UnsafePointer<CChar>!) -> Int32 { fatalError() }
@discardableResult public func renameat(
    _ folder: Int32, _ old: UnsafePointer<CChar>!, _ other: Int32, _ new: UnsafePointer<CChar>!
) -> Int32 { fatalError() }
@discardableResult public func linkat(
    _ folder: Int32, _ old: UnsafePointer<CChar>!, _ other: Int32, _ new: UnsafePointer<CChar>!, _ flags: Int32
) -> Int32 { fatalError() }
@discardableResult public func fchmod(_ descriptor: Int32, _ mode: mode_t) -> Int32 { fatalError() }
@discardableResult public func fchmodat(
    _ descriptor: Int32, _ path: UnsafePointer<CChar>!, _ mode: mode_t, _ flag: Int32
) -> Int32 { fatalError() }
@discardableResult public func close(_ descriptor: Int32) -> Int32 { fatalError() }
@discardableResult public func dup(_ descriptor: Int32) -> Int32 { fatalError() }
@discardableResult public func geteuid() -> UInt32 { fatalError() }
public struct DIR {
    init() { fatalError() }
}
public struct dirent {
    public var d_ino: UInt64
    public var d_namlen: UInt16
    public var d_type: UInt8
    /// 1024 characters, in the SDK.
    public var d_name: (CChar, CChar, CChar, CChar, CChar, CChar, CChar, CChar)
    public init() { fatalError() }
}
@discardableResult public func fdopendir(_ descriptor: Int32) -> UnsafeMutablePointer<DIR>! { fatalError() }
@discardableResult public func opendir(_ path: UnsafePointer<CChar>!) -> UnsafeMutablePointer<DIR>! { fatalError() }
@discardableResult public func readdir(_ folder: UnsafeMutablePointer<DIR>!) -> UnsafeMutablePointer<dirent>! {
    fatalError()
}
public func rewinddir(_ folder: UnsafeMutablePointer<DIR>!) { fatalError() }
@discardableResult public func closedir(_ folder: UnsafeMutablePointer<DIR>!) -> Int32 { fatalError() }
@discardableResult public func statvfs(_ path: UnsafePointer<CChar>!, _ information: UnsafeMutablePointer<statvfs>!)
    -> Int32
{
    fatalError()
}
