// What the project's modules for apps use of Foundation, with the availability of developer.apple.com. Anything else
// that they use is an error here, and has to be looked up and added.

public typealias TimeInterval = Double
public typealias NSInteger = Int
public struct CGFloat: BinaryFloatingPointLike, ExpressibleByFloatLiteral, ExpressibleByIntegerLiteral, Sendable {
    public init(_ value: Double) { fatalError() }
    public init(floatLiteral value: Double) { fatalError() }
    public init(integerLiteral value: Int) { fatalError() }
}
public protocol BinaryFloatingPointLike {}
public struct NSZone {}
public protocol NSCopying { func copy(with zone: NSZone?) -> Any }
public protocol NSObjectProtocol: AnyObject {}
open class NSObject: NSObjectProtocol, Hashable {
    public init() { fatalError() }
    public static func == (lhs: NSObject, rhs: NSObject) -> Bool { fatalError() }
    public func hash(into hasher: inout Hasher) { fatalError() }
}
open class NSNumber: NSObject, @unchecked Sendable {
    public init(value: Double) { fatalError() }
    public init(value: Int) { fatalError() }
}
open class NSError: NSObject, Error, @unchecked Sendable {
    open var domain: String { fatalError() }
    open var code: Int { fatalError() }
    open var userInfo: [String: Any] { fatalError() }
    open var localizedDescription: String { fatalError() }
}
public protocol LocalizedError: Error {
    var errorDescription: String? { get }
    var failureReason: String? { get }
    var recoverySuggestion: String? { get }
    var helpAnchor: String? { get }
}
extension LocalizedError {
    public var errorDescription: String? { fatalError() }
    public var failureReason: String? { fatalError() }
    public var recoverySuggestion: String? { fatalError() }
    public var helpAnchor: String? { fatalError() }
}
extension Error { public var localizedDescription: String { fatalError() } }

public struct URLError: Error, Hashable, Sendable {
    public struct Code: RawRepresentable, Hashable, Sendable {
        public let rawValue: Int
        public init(rawValue: Int) { self.rawValue = rawValue }
        public static var unknown: Code { fatalError() }
        public static var cancelled: Code { fatalError() }
        public static var timedOut: Code { fatalError() }
        public static var cannotFindHost: Code { fatalError() }
        public static var cannotConnectToHost: Code { fatalError() }
        public static var networkConnectionLost: Code { fatalError() }
        public static var dnsLookupFailed: Code { fatalError() }
        public static var notConnectedToInternet: Code { fatalError() }
        public static var secureConnectionFailed: Code { fatalError() }
        public static var serverCertificateHasBadDate: Code { fatalError() }
        public static var serverCertificateUntrusted: Code { fatalError() }
        public static var serverCertificateHasUnknownRoot: Code { fatalError() }
        public static var serverCertificateNotYetValid: Code { fatalError() }
        public static var clientCertificateRejected: Code { fatalError() }
        public static var clientCertificateRequired: Code { fatalError() }
        public static var internationalRoamingOff: Code { fatalError() }
        public static var callIsActive: Code { fatalError() }
        public static var dataNotAllowed: Code { fatalError() }
        public static var requestBodyStreamExhausted: Code { fatalError() }
        public static var appTransportSecurityRequiresSecureConnection: Code { fatalError() }
    }
    public init(_ code: Code, userInfo: [String: Any] = [:]) { fatalError() }
    public var code: Code { fatalError() }
    public enum BackgroundTaskCancelledReason: Int, Sendable {
        case userForceQuitApplication, backgroundUpdatesDisabled, insufficientSystemResources
    }
    public var backgroundTaskCancelledReason: BackgroundTaskCancelledReason? { fatalError() }
    @available(macOS 14.0, iOS 17.0, watchOS 10.0, tvOS 17.0, visionOS 1.0, *)
    public var uploadTaskResumeData: Data? { fatalError() }
}
public struct CocoaError: Error, Hashable, Sendable {
    public struct Code: RawRepresentable, Hashable, Sendable {
        public let rawValue: Int
        public init(rawValue: Int) { self.rawValue = rawValue }
        public static var fileWriteOutOfSpace: Code { fatalError() }
        public static var fileNoSuchFile: Code { fatalError() }
        public static var fileReadNoSuchFile: Code { fatalError() }
        public static var userCancelled: Code { fatalError() }
    }
    public init(_ code: Code, userInfo: [String: Any] = [:]) { fatalError() }
    public var code: Code { fatalError() }
}

@frozen
public struct Data: Sendable, Hashable, Codable, RandomAccessCollection, MutableCollection,
    RangeReplaceableCollection, CustomStringConvertible
{
    public typealias Index = Int
    public typealias Element = UInt8
    public typealias SubSequence = Data
    public typealias Indices = Range<Int>
    public struct Base64DecodingOptions: OptionSet, Sendable {
        public let rawValue: UInt; public init(rawValue: UInt) { self.rawValue = rawValue }
        public static let ignoreUnknownCharacters = Base64DecodingOptions(rawValue: 1)
    }
    public struct Base64EncodingOptions: OptionSet, Sendable {
        public let rawValue: UInt; public init(rawValue: UInt) { self.rawValue = rawValue }
    }
    public struct ReadingOptions: OptionSet, Sendable {
        public let rawValue: UInt; public init(rawValue: UInt) { self.rawValue = rawValue };
        public static var mappedIfSafe: ReadingOptions { fatalError() }
    }
    public struct WritingOptions: OptionSet, Sendable {
        public let rawValue: UInt; public init(rawValue: UInt) { self.rawValue = rawValue };
        public static var atomic: WritingOptions { fatalError() }
        public static var withoutOverwriting: WritingOptions { fatalError() }
    }
    public init() { fatalError() }
    public init<S: Sequence>(_ elements: S) where S.Element == UInt8 { fatalError() }
    public init(capacity: Int) { fatalError() }
    public init(count: Int) { fatalError() }
    public init(repeating repeatedValue: UInt8, count: Int) { fatalError() }
    public init(bytes: UnsafeRawPointer, count: Int) { fatalError() }
    public init(contentsOf url: URL, options: ReadingOptions = []) throws { fatalError() }
    public init?(base64Encoded base64String: String, options: Base64DecodingOptions = []) { fatalError() }
    public init?(base64Encoded base64Data: Data, options: Base64DecodingOptions = []) { fatalError() }
    public func base64EncodedString(options: Base64EncodingOptions = []) -> String { fatalError() }
    public func write(to url: URL, options: WritingOptions = []) throws { fatalError() }
    public mutating func append(_ other: Data) { fatalError() }
    public mutating func append(_ byte: UInt8) { fatalError() }
    public mutating func append(contentsOf bytes: [UInt8]) { fatalError() }
    public mutating func append<S: Sequence>(contentsOf elements: S) where S.Element == UInt8 { fatalError() }
    public mutating func replaceSubrange<C: Collection>(_ subrange: Range<Int>, with newElements: C)
    where C.Element == UInt8 { fatalError() }
    public var count: Int {
        get { fatalError() }
        set { fatalError() }
    }
    public var startIndex: Int { fatalError() }
    public var endIndex: Int { fatalError() }
    public var indices: Range<Int> { fatalError() }
    public func index(before i: Int) -> Int { fatalError() }
    public func index(after i: Int) -> Int { fatalError() }
    public subscript(index: Int) -> UInt8 {
        get { fatalError() }
        set { fatalError() }
    }
    public subscript(bounds: Range<Int>) -> Data {
        get { fatalError() }
        set { fatalError() }
    }
    public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R { fatalError() }
    public mutating func withUnsafeMutableBytes<R>(_ body: (UnsafeMutableRawBufferPointer) throws -> R) rethrows -> R {
        fatalError()
    }
    public func withContiguousStorageIfAvailable<R>(_ body: (UnsafeBufferPointer<UInt8>) throws -> R) rethrows -> R? {
        fatalError()
    }
    public var description: String { fatalError() }
    public static func == (lhs: Data, rhs: Data) -> Bool { fatalError() }
    public func hash(into hasher: inout Hasher) { fatalError() }
    public init(from decoder: any Decoder) throws { fatalError() }
    public func encode(to encoder: any Encoder) throws { fatalError() }
}
public protocol ContiguousBytes {
    func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R
}
extension Data: ContiguousBytes {}
extension Array: ContiguousBytes where Element == UInt8 {}
public protocol DataProtocol: RandomAccessCollection where Element == UInt8 {}
extension Data: DataProtocol {}
extension Array: DataProtocol where Element == UInt8 {}
extension ArraySlice: DataProtocol where Element == UInt8 {}
@available(macOS 10.14.4, iOS 12.2, watchOS 5.2, tvOS 12.2, *)
extension Data {
    public var bytes: RawSpan { @_lifetime(borrow self) get { fatalError() } }
    public var span: Span<UInt8> { @_lifetime(borrow self) get { fatalError() } }
}

public struct URL: Sendable, Hashable, Codable, CustomStringConvertible {
    public enum DirectoryHint: Sendable { case isDirectory, notDirectory, checkFileSystem, inferFromPath }
    public init?(string: String) { fatalError() }
    public init?(string: String, relativeTo url: URL?) { fatalError() }
    public init(fileURLWithPath path: String) { fatalError() }
    public init(filePath path: String, directoryHint: DirectoryHint = .inferFromPath, relativeTo base: URL? = nil) {
        fatalError()
    }
    public var absoluteString: String { fatalError() }
    public var absoluteURL: URL { fatalError() }
    public var scheme: String? { fatalError() }
    public var port: Int? { fatalError() }
    public var path: String { fatalError() }
    public var query: String? { fatalError() }
    public var fragment: String? { fatalError() }
    public var isFileURL: Bool { fatalError() }
    public var lastPathComponent: String { fatalError() }
    public var pathExtension: String { fatalError() }
    public func host(percentEncoded: Bool = true) -> String? { fatalError() }
    public func user(percentEncoded: Bool = true) -> String? { fatalError() }
    public func password(percentEncoded: Bool = true) -> String? { fatalError() }
    public func path(percentEncoded: Bool = true) -> String { fatalError() }
    public func query(percentEncoded: Bool = true) -> String? { fatalError() }
    public func resolvingSymlinksInPath() -> URL { fatalError() }
    public func deletingLastPathComponent() -> URL { fatalError() }
    public func appending<S: StringProtocol>(path: S, directoryHint: DirectoryHint = .inferFromPath) -> URL {
        fatalError()
    }
    public func appending<S: StringProtocol>(component: S, directoryHint: DirectoryHint = .inferFromPath) -> URL {
        fatalError()
    }
    public mutating func setResourceValues(_ values: URLResourceValues) throws { fatalError() }
    public func resourceValues(forKeys keys: Set<URLResourceKey>) throws -> URLResourceValues { fatalError() }
    public static var temporaryDirectory: URL { fatalError() }
    public static var applicationSupportDirectory: URL { fatalError() }
    public static var cachesDirectory: URL { fatalError() }
    public static var documentsDirectory: URL { fatalError() }
    public var description: String { fatalError() }
    public static func == (lhs: URL, rhs: URL) -> Bool { fatalError() }
    public func hash(into hasher: inout Hasher) { fatalError() }
    public init(from decoder: any Decoder) throws { fatalError() }
    public func encode(to encoder: any Encoder) throws { fatalError() }
}
public struct URLResourceKey: Hashable, RawRepresentable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public static let isExcludedFromBackupKey = URLResourceKey(rawValue: "NSURLIsExcludedFromBackupKey")
    public static let fileSizeKey = URLResourceKey(rawValue: "NSURLFileSizeKey")
    public static let volumeAvailableCapacityForImportantUsageKey = URLResourceKey(
        rawValue: "NSURLVolumeAvailableCapacityForImportantUsageKey")
    public static let volumeSupportsFileCloningKey = URLResourceKey(rawValue: "NSURLVolumeSupportsFileCloningKey")
}
public struct URLResourceValues: Sendable {
    public init() { fatalError() }
    public var isExcludedFromBackup: Bool? {
        get { fatalError() }
        set { fatalError() }
    }
    public var fileSize: Int? { fatalError() }
    public var volumeAvailableCapacityForImportantUsage: Int64? { fatalError() }
    public var volumeSupportsFileCloning: Bool? { fatalError() }
}
public struct URLQueryItem: Sendable, Hashable {
    public init(name: String, value: String?) { fatalError() }
    public var name: String { fatalError() }
    public var value: String? { fatalError() }
}
public struct URLComponents: Sendable, Hashable {
    public var query: String? {
        get { fatalError() }
        set { fatalError() }
    }
    public var queryItems: [URLQueryItem]? {
        get { fatalError() }
        set { fatalError() }
    }
    public init() { fatalError() }
    public init?(url: URL, resolvingAgainstBaseURL resolve: Bool) { fatalError() }
    public init?(string: String) { fatalError() }
    public var url: URL? { fatalError() }
    public var user: String? {
        get { fatalError() }
        set { fatalError() }
    }
    public var password: String? {
        get { fatalError() }
        set { fatalError() }
    }
    public var percentEncodedQuery: String? {
        get { fatalError() }
        set { fatalError() }
    }
    public var percentEncodedPath: String {
        get { fatalError() }
        set { fatalError() }
    }
    public static func == (lhs: URLComponents, rhs: URLComponents) -> Bool { fatalError() }
    public func hash(into hasher: inout Hasher) { fatalError() }
}
public struct UUID: Sendable, Hashable, Codable, CustomStringConvertible {
    public init() { fatalError() }
    public init?(uuidString string: String) { fatalError() }
    public var uuidString: String { fatalError() }
    public var description: String { fatalError() }
    public static func == (lhs: UUID, rhs: UUID) -> Bool { fatalError() }
    public func hash(into hasher: inout Hasher) { fatalError() }
    public init(from decoder: any Decoder) throws { fatalError() }
    public func encode(to encoder: any Encoder) throws { fatalError() }
}
public struct Date: Sendable, Hashable, Comparable, Codable, CustomStringConvertible {
    public init() { fatalError() }
    public init(timeIntervalSince1970: TimeInterval) { fatalError() }
    public init(timeIntervalSinceNow: TimeInterval) { fatalError() }
    public init(timeIntervalSinceReferenceDate ti: TimeInterval) { fatalError() }
    public static var now: Date { fatalError() }
    public static var distantPast: Date { fatalError() }
    public static var distantFuture: Date { fatalError() }
    public var timeIntervalSince1970: TimeInterval { fatalError() }
    public var timeIntervalSinceNow: TimeInterval { fatalError() }
    public var timeIntervalSinceReferenceDate: TimeInterval { fatalError() }
    public func timeIntervalSince(_ date: Date) -> TimeInterval { fatalError() }
    public func addingTimeInterval(_ timeInterval: TimeInterval) -> Date { fatalError() }
    public static func < (lhs: Date, rhs: Date) -> Bool { fatalError() }
    public static func > (lhs: Date, rhs: Date) -> Bool { fatalError() }
    public static func + (lhs: Date, rhs: TimeInterval) -> Date { fatalError() }
    public var description: String { fatalError() }
    public static func == (lhs: Date, rhs: Date) -> Bool { fatalError() }
    public func hash(into hasher: inout Hasher) { fatalError() }
    public init(from decoder: any Decoder) throws { fatalError() }
    public func encode(to encoder: any Encoder) throws { fatalError() }
}
public struct TimeZone: Sendable, Hashable { public static var gmt: TimeZone { fatalError() } }
public struct Calendar: Sendable, Hashable {
    public enum Identifier: Sendable { case gregorian, iso8601 }
    public init(identifier: Identifier) { fatalError() }
    public var timeZone: TimeZone {
        get { fatalError() }
        set { fatalError() }
    }
    public enum Component: Sendable, Hashable { case era, year, month, day, hour, minute, second, nanosecond }
    public func component(_ component: Component, from date: Date) -> Int { fatalError() }
    public func date(from components: DateComponents) -> Date? { fatalError() }
    public static func == (lhs: Calendar, rhs: Calendar) -> Bool { fatalError() }
    public func hash(into hasher: inout Hasher) { fatalError() }
}
public struct DateComponents: Sendable, Hashable {
    public init(
        calendar: Calendar? = nil, timeZone: TimeZone? = nil, era: Int? = nil, year: Int? = nil, month: Int? = nil,
        day: Int? = nil, hour: Int? = nil, minute: Int? = nil, second: Int? = nil, nanosecond: Int? = nil,
        weekday: Int? = nil, weekdayOrdinal: Int? = nil, quarter: Int? = nil, weekOfMonth: Int? = nil,
        weekOfYear: Int? = nil, yearForWeekOfYear: Int? = nil
    ) { fatalError() }
    public static func == (lhs: DateComponents, rhs: DateComponents) -> Bool { fatalError() }
    public func hash(into hasher: inout Hasher) { fatalError() }
}
public struct Locale: Sendable, Hashable { public init(identifier: String) { fatalError() } }
public struct Decimal: Sendable, Hashable, Codable, CustomStringConvertible {
    public init?(string: String, locale: Locale? = nil) { fatalError() }
    public var isNaN: Bool { fatalError() }
    public var description: String { fatalError() }
    public static func == (lhs: Decimal, rhs: Decimal) -> Bool { fatalError() }
    public func hash(into hasher: inout Hasher) { fatalError() }
    public init(from decoder: any Decoder) throws { fatalError() }
    public func encode(to encoder: any Encoder) throws { fatalError() }
}
open class JSONDecoder: @unchecked Sendable {
    public init() { fatalError() }
    open func decode<T: Decodable>(_ type: T.Type, from data: Data) throws -> T { fatalError() }
}
open class JSONEncoder: @unchecked Sendable {
    public struct OutputFormatting: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        public static let prettyPrinted = OutputFormatting(rawValue: 1)
        public static let sortedKeys = OutputFormatting(rawValue: 2)
        public static let withoutEscapingSlashes = OutputFormatting(rawValue: 8)
    }
    public init() { fatalError() }
    open var outputFormatting: OutputFormatting {
        get { fatalError() }
        set { fatalError() }
    }
    open func encode<T: Encodable>(_ value: T) throws -> Data { fatalError() }
}
public struct FileAttributeKey: Hashable, RawRepresentable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public static let posixPermissions = FileAttributeKey(rawValue: "NSFilePosixPermissions")
    public static let modificationDate = FileAttributeKey(rawValue: "NSFileModificationDate")
    public static let size = FileAttributeKey(rawValue: "NSFileSize")
    public static let protectionKey = FileAttributeKey(rawValue: "NSFileProtectionKey")
    public static let type = FileAttributeKey(rawValue: "NSFileType")
}
public struct FileAttributeType: Hashable, RawRepresentable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public static let typeDirectory = FileAttributeType(rawValue: "NSFileTypeDirectory")
}
open class FileManager: NSObject {
    open class var `default`: FileManager { fatalError() }
    open var temporaryDirectory: URL { fatalError() }
    open func contentsOfDirectory(atPath path: String) throws -> [String] { fatalError() }
    open func createDirectory(
        at url: URL, withIntermediateDirectories: Bool, attributes: [FileAttributeKey: Any]? = nil
    ) throws { fatalError() }
    open func setAttributes(_ attributes: [FileAttributeKey: Any], ofItemAtPath path: String) throws { fatalError() }
    open func containerURL(forSecurityApplicationGroupIdentifier groupIdentifier: String) -> URL? { fatalError() }
    open func createFile(
        atPath path: String, contents data: Data?, attributes attr: [FileAttributeKey: Any]? = nil
    ) -> Bool { fatalError() }
    open func attributesOfItem(atPath path: String) throws -> [FileAttributeKey: Any] { fatalError() }
    open func fileExists(atPath path: String) -> Bool { fatalError() }
    open func removeItem(at url: URL) throws { fatalError() }
    open func copyItem(at from: URL, to: URL) throws { fatalError() }
    open func moveItem(at from: URL, to: URL) throws { fatalError() }
}
@available(*, unavailable)
extension FileManager: @unchecked Sendable {}
open class FileHandle: NSObject, @unchecked Sendable {
    public init?(forReadingAtPath path: String) { fatalError() }
    open func read(upToCount count: Int) throws -> Data? { fatalError() }
    open func close() throws { fatalError() }
}
public enum QualityOfService: Int, Sendable { case userInteractive, userInitiated, utility, background, `default` }
public struct ProgressKind: Hashable, RawRepresentable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public static let file = ProgressKind(rawValue: "NSProgressKindFile")
}
public struct ProgressUserInfoKey: Hashable, RawRepresentable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public static let throughputKey = ProgressUserInfoKey(rawValue: "NSProgressThroughputKey")
    public static let estimatedTimeRemainingKey = ProgressUserInfoKey(rawValue: "NSProgressEstimatedTimeRemainingKey")
}
extension StringProtocol {
    public func contains<T: StringProtocol>(_ other: T) -> Bool { fatalError() }
}
// By these the compiler makes `error as NSError`.
public func _convertErrorToNSError(_ error: any Error) -> NSError { fatalError() }
public func _convertNSErrorToError(_ error: NSError?) -> any Error { fatalError() }
