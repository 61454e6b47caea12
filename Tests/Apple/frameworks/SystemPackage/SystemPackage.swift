public import Darwin
public enum CInterop {
    public typealias Mode = UInt16
    public typealias PlatformChar = CChar
    public typealias Stat = Int
}
public struct Errno: RawRepresentable, Error, Sendable, Hashable, Codable, CustomStringConvertible {
    public let rawValue: CInt
    public init(rawValue: CInt) { self.rawValue = rawValue }
    public static var interrupted: Errno { fatalError() }
    public static var ioError: Errno { fatalError() }
    public static var noSuchFileOrDirectory: Errno { fatalError() }
    public static var notDirectory: Errno { fatalError() }
    public static var wouldBlock: Errno { fatalError() }
    public static var diskQuotaExceeded: Errno { fatalError() }
    public static var noSpace: Errno { fatalError() }
    public static var permissionDenied: Errno { fatalError() }
    public static var tooManyOpenFilesInSystem: Errno { fatalError() }
    public static var noMemory: Errno { fatalError() }
    public static var notPermitted: Errno { fatalError() }
    public static var tooManySymbolicLinkLevels: Errno { fatalError() }
    public static var tooManyOpenFiles: Errno { fatalError() }
    public static var directoryNotEmpty: Errno { fatalError() }
    public static var isDirectory: Errno { fatalError() }
    public static var invalidArgument: Errno { fatalError() }
    public static var notSupported: Errno { fatalError() }
    public static var readOnlyFileSystem: Errno { fatalError() }
    public static var fileExists: Errno { fatalError() }
    public static var resourceBusy: Errno { fatalError() }
    public static func ~= (_ lhs: Errno, _ rhs: any Error) -> Bool { fatalError() }
    public var description: String { fatalError() }
}
public struct FilePath: Sendable, Hashable, Codable, ExpressibleByStringLiteral, CustomStringConvertible {
    public init(_ string: String) { fatalError() }
    public init(stringLiteral: String) { fatalError() }
    public var string: String { fatalError() }
    public init(platformString: UnsafePointer<CInterop.PlatformChar>) { fatalError() }
    public func withPlatformString<Result>(
        _ body: (UnsafePointer<CInterop.PlatformChar>) throws -> Result
    ) rethrows -> Result { fatalError() }
    public var isEmpty: Bool { fatalError() }
    public var isAbsolute: Bool { fatalError() }
    public var `extension`: String? { fatalError() }
    public var stem: String? { fatalError() }
    public struct Root: Sendable, Hashable {
        public static func == (lhs: Root, rhs: Root) -> Bool { fatalError() }
        public func hash(into hasher: inout Hasher) { fatalError() }
    }
    public init(root: Root?, components: Component...) { fatalError() }
    public struct Component: Sendable, Hashable, CustomStringConvertible, ExpressibleByStringLiteral {
        public enum Kind: Sendable { case currentDirectory, parentDirectory, regular }
        public var kind: Kind { fatalError() }
        public func withPlatformString<Result>(
            _ body: (UnsafePointer<CInterop.PlatformChar>) throws -> Result
        ) rethrows -> Result { fatalError() }
        public init?(_ string: String) { fatalError() }
        public init(stringLiteral: String) { fatalError() }
        public var string: String { fatalError() }
        public var description: String { fatalError() }
        public static func == (lhs: Component, rhs: Component) -> Bool { fatalError() }
        public func hash(into hasher: inout Hasher) { fatalError() }
    }
    public var lastComponent: Component? { fatalError() }
    public func removingLastComponent() -> FilePath { fatalError() }
    @discardableResult public mutating func removeLastComponent() -> Bool { fatalError() }
    public func appending(_ other: Component) -> FilePath { fatalError() }
    @_disfavoredOverload public func appending(_ other: String) -> FilePath { fatalError() }
    public mutating func append(_ other: Component) { fatalError() }
    @_disfavoredOverload public mutating func append(_ other: String) { fatalError() }
    public func pushing(_ other: FilePath) -> FilePath { fatalError() }
    public var description: String { fatalError() }
    public static func == (lhs: FilePath, rhs: FilePath) -> Bool { fatalError() }
    public func hash(into hasher: inout Hasher) { fatalError() }
    public init(from decoder: any Decoder) throws { fatalError() }
    public func encode(to encoder: any Encoder) throws { fatalError() }
}
public struct FilePermissions: OptionSet, Sendable {
    public let rawValue: CInterop.Mode
    public init(rawValue: CInterop.Mode) { self.rawValue = rawValue }
    public static var groupWrite: FilePermissions { fatalError() }
    public static var otherWrite: FilePermissions { fatalError() }
    public static var ownerRead: FilePermissions { fatalError() }
    public static var ownerReadWrite: FilePermissions { fatalError() }
    public static var ownerReadWriteExecute: FilePermissions { fatalError() }
    public static var ownerWrite: FilePermissions { fatalError() }
}
public struct FileType: RawRepresentable, Sendable, Hashable, Codable {
    public var rawValue: CInterop.Mode
    public init(rawValue: CInterop.Mode) { self.rawValue = rawValue }
    public static var blockSpecial: FileType { fatalError() }
    public static var characterSpecial: FileType { fatalError() }
    public static var directory: FileType { fatalError() }
    public static var fifo: FileType { fatalError() }
    public static var regular: FileType { fatalError() }
    public static var socket: FileType { fatalError() }
}
public struct UserID: RawRepresentable, Sendable, Hashable {
    public var rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }
}
public struct Inode: RawRepresentable, Sendable, Hashable {
    public var rawValue: ino_t
    public init(rawValue: ino_t) { self.rawValue = rawValue }
}
public struct DeviceID: RawRepresentable, Sendable, Hashable {
    public var rawValue: dev_t
    public init(rawValue: dev_t) { self.rawValue = rawValue }
}
extension FilePath {
    public func stat(
        followTargetSymlink: Bool = true, retryOnInterrupt: Bool = true
    ) throws(Errno) -> Stat { fatalError() }
    public func stat(
        relativeTo descriptor: FileDescriptor, flags: Stat.Flags, retryOnInterrupt: Bool = true
    ) throws(Errno) -> Stat { fatalError() }
}
public struct Stat: RawRepresentable, Sendable {
    public var rawValue: CInterop.Stat
    public init(rawValue: CInterop.Stat) { self.rawValue = rawValue }
    public struct Flags: OptionSet, Sendable {
        public let rawValue: CInt
        public init(rawValue: CInt) { self.rawValue = rawValue }
        public static var symlinkNoFollow: Flags { fatalError() }
    }
    public var type: FileType { fatalError() }
    public var permissions: FilePermissions { fatalError() }
    public var linkCount: Int { fatalError() }
    public var inode: Inode { fatalError() }
    public var deviceID: DeviceID { fatalError() }
    public var userID: UserID { fatalError() }
    public var size: Int64 {
        get { fatalError() }
        set { fatalError() }
    }
    public var st_mtim: timespec {
        get { fatalError() }
        set { fatalError() }
    }
}
public struct FileDescriptor: RawRepresentable, Sendable, Hashable {
    public let rawValue: CInt
    public init(rawValue: CInt) { self.rawValue = rawValue }
    public struct AccessMode: RawRepresentable, Sendable, Hashable {
        public var rawValue: CInt
        public init(rawValue: CInt) { self.rawValue = rawValue }
        public static var readOnly: AccessMode { fatalError() }
        public static var writeOnly: AccessMode { fatalError() }
        public static var readWrite: AccessMode { fatalError() }
    }
    public struct OpenOptions: OptionSet, Sendable, Hashable {
        public var rawValue: CInt
        public init(rawValue: CInt) { self.rawValue = rawValue }
        public static var nonBlocking: OpenOptions { fatalError() }
        public static var create: OpenOptions { fatalError() }
        public static var truncate: OpenOptions { fatalError() }
        public static var append: OpenOptions { fatalError() }
        public static var noFollow: OpenOptions { fatalError() }
        public static var exclusiveCreate: OpenOptions { fatalError() }
        public static var closeOnExec: OpenOptions { fatalError() }
        public static var directory: OpenOptions { fatalError() }
    }
    public struct SeekOrigin: RawRepresentable, Sendable, Hashable {
        public var rawValue: CInt
        public init(rawValue: CInt) { self.rawValue = rawValue }
        public static var start: SeekOrigin { fatalError() }
        public static var end: SeekOrigin { fatalError() }
    }
    public static func open(
        _ path: FilePath, _ mode: AccessMode, options: OpenOptions = OpenOptions(), permissions: FilePermissions? = nil,
        retryOnInterrupt: Bool = true
    ) throws -> FileDescriptor { fatalError() }
    public func close() throws { fatalError() }
    public func closeAfter<R>(_ body: () throws -> R) throws -> R { fatalError() }
    @discardableResult public func seek(offset: Int64, from whence: SeekOrigin) throws -> Int64 { fatalError() }
    public func read(into buffer: UnsafeMutableRawBufferPointer, retryOnInterrupt: Bool = true) throws -> Int {
        fatalError()
    }
    public func read(
        fromAbsoluteOffset offset: Int64, into buffer: UnsafeMutableRawBufferPointer, retryOnInterrupt: Bool = true
    ) throws -> Int { fatalError() }
    public func write(_ buffer: UnsafeRawBufferPointer, retryOnInterrupt: Bool = true) throws -> Int { fatalError() }
    public func write(
        toAbsoluteOffset offset: Int64, _ buffer: UnsafeRawBufferPointer, retryOnInterrupt: Bool = true
    ) throws -> Int { fatalError() }
    public func resize(to newSize: Int64, retryOnInterrupt: Bool = true) throws { fatalError() }
    public func duplicate(as target: FileDescriptor? = nil, retryOnInterrupt: Bool = true) throws -> FileDescriptor {
        fatalError()
    }
    @discardableResult public func writeAll<S: Sequence>(_ sequence: S) throws -> Int where S.Element == UInt8 {
        fatalError()
    }
    public func stat(retryOnInterrupt: Bool = true) throws(Errno) -> Stat { fatalError() }
}
