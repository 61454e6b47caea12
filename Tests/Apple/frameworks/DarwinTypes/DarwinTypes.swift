// In C a structure and a function may share a name; in a module of Swift they may not, so the structures have their
// own.
public typealias mode_t = UInt16
public typealias off_t = Int64
public typealias dev_t = Int32
public typealias ino_t = UInt64
public struct timespec: Sendable {
    public var tv_sec: Int
    public var tv_nsec: Int
    public init() { fatalError() }
}
public struct stat: Sendable {
    public var st_dev: dev_t
    public var st_mode: mode_t
    public var st_nlink: UInt16
    public var st_ino: ino_t
    public var st_uid: UInt32
    public var st_gid: UInt32
    public var st_mtimespec: timespec
    public var st_size: off_t
    public init() { fatalError() }
}
public struct statvfs: Sendable {
    public var f_bsize: UInt
    public var f_frsize: UInt
    public var f_blocks: UInt32
    public var f_bfree: UInt32
    public var f_bavail: UInt32
    public var f_files: UInt32
    public var f_ffree: UInt32
    public var f_favail: UInt32
    public init() { fatalError() }
}
