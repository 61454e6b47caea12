// What Foundation on Apple's platforms has and swift-corelibs-foundation has not, or has otherwise.
// Written from developer.apple.com's declarations; Sendable as in the SDKs of Xcode 16 and 26.
// It is only type-checked against: nothing here runs.
@_exported import Darwin
@_exported import Dispatch

// NSStream and NSThread are not Sendable on Apple's platforms.

open class Stream: NSObject {
    public enum Status: UInt, Sendable { case notOpen, opening, open, reading, writing, atEnd, closed, error }
    open func open() { fatalError() }
    open func close() { fatalError() }
    open var streamStatus: Stream.Status { fatalError() }
    open var streamError: (any Error)? { fatalError() }
    // On Apple's platforms: AutoreleasingUnsafeMutablePointer<InputStream?>?
    open class func getBoundStreams(
        withBufferSize bufferSize: Int, inputStream: UnsafeMutablePointer<InputStream?>?,
        outputStream: UnsafeMutablePointer<OutputStream?>?
    ) { fatalError() }
}
@available(*, unavailable)
extension Stream: @unchecked Sendable {}

open class InputStream: Stream {
    public init(data: Data) { fatalError() }
    public init?(url: URL) { fatalError() }
    public convenience init?(fileAtPath path: String) { fatalError() }
    open func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int { fatalError() }
    open func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length len: UnsafeMutablePointer<Int>
    ) -> Bool { fatalError() }
    open var hasBytesAvailable: Bool { fatalError() }
}

open class OutputStream: Stream {
    open func write(_ buffer: UnsafePointer<UInt8>, maxLength len: Int) -> Int { fatalError() }
    open var hasSpaceAvailable: Bool { fatalError() }
    public init(toMemory: ()) { fatalError() }
}

open class Thread: NSObject {
    public override init() { fatalError() }
    public convenience init(block: @escaping @Sendable () -> Void) { fatalError() }
    open var name: String? {
        get { fatalError() }
        set { fatalError() }
    }
    open var stackSize: Int {
        get { fatalError() }
        set { fatalError() }
    }
    open var qualityOfService: QualityOfService {
        get { fatalError() }
        set { fatalError() }
    }
    open func start() { fatalError() }
    open func cancel() { fatalError() }
    open var isCancelled: Bool { fatalError() }
    open class var isMainThread: Bool { fatalError() }
    open class func sleep(forTimeInterval ti: TimeInterval) { fatalError() }
}
@available(*, unavailable)
extension Thread: @unchecked Sendable {}

open class OperationQueue: NSObject, @unchecked Sendable {
    public override init() { fatalError() }
    open var maxConcurrentOperationCount: Int {
        get { fatalError() }
        set { fatalError() }
    }
    open var name: String? {
        get { fatalError() }
        set { fatalError() }
    }
    open var qualityOfService: QualityOfService {
        get { fatalError() }
        set { fatalError() }
    }
    open var underlyingQueue: DispatchQueue? {
        get { fatalError() }
        set { fatalError() }
    }
    open func addOperation(_ block: @escaping @Sendable () -> Void) { fatalError() }
    open func addBarrierBlock(_ barrier: @escaping @Sendable () -> Void) { fatalError() }
    open func waitUntilAllOperationsAreFinished() { fatalError() }
    open class var main: OperationQueue { fatalError() }
}

open class Progress: NSObject, @unchecked Sendable {
    public override init() { fatalError() }
    public convenience init(totalUnitCount unitCount: Int64) { fatalError() }
    open class func discreteProgress(totalUnitCount unitCount: Int64) -> Progress { fatalError() }
    open func addChild(_ child: Progress, withPendingUnitCount inUnitCount: Int64) { fatalError() }
    open var totalUnitCount: Int64 {
        get { fatalError() }
        set { fatalError() }
    }
    open var completedUnitCount: Int64 {
        get { fatalError() }
        set { fatalError() }
    }
    open var fractionCompleted: Double { fatalError() }
    open var isFinished: Bool { fatalError() }
    open var isCancelled: Bool { fatalError() }
    open var isCancellable: Bool {
        get { fatalError() }
        set { fatalError() }
    }
    open var isIndeterminate: Bool { fatalError() }
    open var kind: ProgressKind? {
        get { fatalError() }
        set { fatalError() }
    }
    open var cancellationHandler: (@Sendable () -> Void)? {
        get { fatalError() }
        set { fatalError() }
    }
    open func setUserInfoObject(_ objectOrNil: Any?, forKey key: ProgressUserInfoKey) { fatalError() }
    open var userInfo: [ProgressUserInfoKey: Any] { fatalError() }
    open func cancel() { fatalError() }
}

#if !os(macOS)
/// There are no child processes on iOS, tvOS, watchOS and visionOS.
@available(*, unavailable, message: "Process is there on macOS only")
public enum Process {}
#endif
public struct Notification: Sendable {
    public struct Name: Hashable, RawRepresentable, Sendable {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public init(_ rawValue: String) { self.rawValue = rawValue }
    }
    public let name: Name
}
open class NotificationCenter: NSObject, @unchecked Sendable {
    open class var `default`: NotificationCenter { fatalError() }
    open func post(name: Notification.Name, object: Any?) { fatalError() }
}
public struct FileProtectionType: Hashable, RawRepresentable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public static let none = FileProtectionType(rawValue: "")
    public static let complete = FileProtectionType(rawValue: "")
    public static let completeUnlessOpen = FileProtectionType(rawValue: "")
    public static let completeUntilFirstUserAuthentication = FileProtectionType(rawValue: "")
}
open class ProcessInfo: NSObject, @unchecked Sendable {
    open class var processInfo: ProcessInfo { fatalError() }
    #if !os(macOS)
    open func performExpiringActivity(
        withReason reason: String, using block: @escaping @Sendable (Bool) -> Void
    ) { fatalError() }
    #endif
}
