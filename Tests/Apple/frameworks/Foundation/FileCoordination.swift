// Neither NSFileCoordinator nor NSFileAccessIntent is Sendable.
open class NSFileCoordinator: NSObject {
    public struct ReadingOptions: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        public static var withoutChanges: ReadingOptions { ReadingOptions(rawValue: 1) }
        public static var forUploading: ReadingOptions { ReadingOptions(rawValue: 8) }
    }
    public override init() { fatalError() }
    open func coordinate(
        with intents: [NSFileAccessIntent], queue: OperationQueue,
        byAccessor accessor: @escaping @Sendable ((any Error)?) -> Void
    ) { fatalError() }
    public struct WritingOptions: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        public static var forMerging: WritingOptions { WritingOptions(rawValue: 4) }
    }
    open func coordinate(
        writingItemAt url: URL, options: WritingOptions = [], error outError: UnsafeMutablePointer<NSError?>?,
        byAccessor writer: (URL) -> Void
    ) { fatalError() }
    open func cancel() { fatalError() }
}
@available(*, unavailable)
extension NSFileCoordinator: @unchecked Sendable {}

open class NSFileAccessIntent: NSObject {
    open class func readingIntent(with url: URL, options: NSFileCoordinator.ReadingOptions = []) -> Self {
        fatalError()
    }
    open var url: URL { fatalError() }
}
@available(*, unavailable)
extension NSFileAccessIntent: @unchecked Sendable {}

extension URL {
    public typealias BookmarkCreationOptions = NSURL.BookmarkCreationOptions
    public typealias BookmarkResolutionOptions = NSURL.BookmarkResolutionOptions
    public func bookmarkData(
        options: BookmarkCreationOptions = [], includingResourceValuesForKeys keys: Set<URLResourceKey>? = nil,
        relativeTo url: URL? = nil
    ) throws -> Data { fatalError() }
    public init(
        resolvingBookmarkData data: Data, options: BookmarkResolutionOptions = [], relativeTo url: URL? = nil,
        bookmarkDataIsStale: inout Bool
    ) throws { fatalError() }
    @discardableResult public func startAccessingSecurityScopedResource() -> Bool { fatalError() }
    public func stopAccessingSecurityScopedResource() { fatalError() }
}

open class NSURL: NSObject {
    public struct BookmarkCreationOptions: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        public static var minimalBookmark: BookmarkCreationOptions { fatalError() }
        #if os(macOS)
        public static var withSecurityScope: BookmarkCreationOptions { fatalError() }
        public static var securityScopeAllowOnlyReadAccess: BookmarkCreationOptions { fatalError() }
        #endif
    }
    public struct BookmarkResolutionOptions: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        public static var withoutUI: BookmarkResolutionOptions { fatalError() }
        #if os(macOS)
        public static var withSecurityScope: BookmarkResolutionOptions { fatalError() }
        #endif
    }
}
