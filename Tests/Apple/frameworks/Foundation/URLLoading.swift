import Dispatch

// The URL loading system as Foundation on Apple's platforms has it, of which swift-corelibs-foundation makes a module
// of its own.

public struct URLRequest: Hashable, Sendable {
    public typealias CachePolicy = NSURLRequest.CachePolicy
    public typealias NetworkServiceType = NSURLRequest.NetworkServiceType
    public enum Attribution: Sendable { case developer, user }
    public init(url: URL, cachePolicy: CachePolicy = .useProtocolCachePolicy, timeoutInterval: TimeInterval = 60.0) {
        fatalError()
    }
    public var cachePolicy: CachePolicy {
        get { fatalError() }
        set { fatalError() }
    }
    public var url: URL? {
        get { fatalError() }
        set { fatalError() }
    }
    public var timeoutInterval: TimeInterval {
        get { fatalError() }
        set { fatalError() }
    }
    public var mainDocumentURL: URL? {
        get { fatalError() }
        set { fatalError() }
    }
    public var networkServiceType: NetworkServiceType {
        get { fatalError() }
        set { fatalError() }
    }
    public var allowsCellularAccess: Bool {
        get { fatalError() }
        set { fatalError() }
    }
    public var allowsExpensiveNetworkAccess: Bool {
        get { fatalError() }
        set { fatalError() }
    }
    public var allowsConstrainedNetworkAccess: Bool {
        get { fatalError() }
        set { fatalError() }
    }
    public var assumesHTTP3Capable: Bool {
        get { fatalError() }
        set { fatalError() }
    }
    public var attribution: Attribution {
        get { fatalError() }
        set { fatalError() }
    }
    public var httpMethod: String? {
        get { fatalError() }
        set { fatalError() }
    }
    public var allHTTPHeaderFields: [String: String]? {
        get { fatalError() }
        set { fatalError() }
    }
    public func value(forHTTPHeaderField field: String) -> String? { fatalError() }
    public mutating func setValue(_ value: String?, forHTTPHeaderField field: String) { fatalError() }
    public mutating func addValue(_ value: String, forHTTPHeaderField field: String) { fatalError() }
    public var httpBody: Data? {
        get { fatalError() }
        set { fatalError() }
    }
    public var httpBodyStream: InputStream? {
        get { fatalError() }
        set { fatalError() }
    }
    public var httpShouldHandleCookies: Bool {
        get { fatalError() }
        set { fatalError() }
    }
    public static func == (lhs: URLRequest, rhs: URLRequest) -> Bool { fatalError() }
    public func hash(into hasher: inout Hasher) { fatalError() }
}

open class NSURLRequest: NSObject {
    public enum CachePolicy: UInt, Sendable {
        case useProtocolCachePolicy = 0, reloadIgnoringLocalCacheData = 1, returnCacheDataElseLoad = 2
        case returnCacheDataDontLoad = 3, reloadIgnoringLocalAndRemoteCacheData = 4, reloadRevalidatingCacheData = 5
    }
    public enum NetworkServiceType: UInt, Sendable {
        case `default` = 0, video = 2, background = 3, voice = 4, responsiveData = 6
    }
}

open class URLResponse: NSObject, @unchecked Sendable {
    open var url: URL? { fatalError() }
    open var mimeType: String? { fatalError() }
    open var expectedContentLength: Int64 { fatalError() }
    open var suggestedFilename: String? { fatalError() }
}

open class HTTPURLResponse: URLResponse, @unchecked Sendable {
    public init?(url: URL, statusCode: Int, httpVersion HTTPVersion: String?, headerFields: [String: String]?) {
        fatalError()
    }
    open var statusCode: Int { fatalError() }
    open var allHeaderFields: [AnyHashable: Any] { fatalError() }
    open func value(forHTTPHeaderField field: String) -> String? { fatalError() }
}

open class HTTPCookieStorage: NSObject, @unchecked Sendable {}
open class URLCache: NSObject, @unchecked Sendable {}
open class URLCredentialStorage: NSObject, @unchecked Sendable {}
open class URLCredential: NSObject, @unchecked Sendable {}
open class URLProtectionSpace: NSObject, @unchecked Sendable {}
open class URLAuthenticationChallenge: NSObject, @unchecked Sendable {
    open var protectionSpace: URLProtectionSpace { fatalError() }
    open var proposedCredential: URLCredential? { fatalError() }
    open var previousFailureCount: Int { fatalError() }
}

open class URLSessionConfiguration: NSObject, NSCopying, @unchecked Sendable {
    @available(*, deprecated, message: "Please use URLSessionConfiguration.default or other class methods")
    public override init() { fatalError() }
    open class var `default`: URLSessionConfiguration { fatalError() }
    open class var ephemeral: URLSessionConfiguration { fatalError() }
    open class func background(withIdentifier identifier: String) -> URLSessionConfiguration { fatalError() }
    open var identifier: String? { fatalError() }
    open var requestCachePolicy: NSURLRequest.CachePolicy {
        get { fatalError() }
        set { fatalError() }
    }
    open var timeoutIntervalForRequest: TimeInterval {
        get { fatalError() }
        set { fatalError() }
    }
    open var timeoutIntervalForResource: TimeInterval {
        get { fatalError() }
        set { fatalError() }
    }
    open var networkServiceType: NSURLRequest.NetworkServiceType {
        get { fatalError() }
        set { fatalError() }
    }
    open var allowsCellularAccess: Bool {
        get { fatalError() }
        set { fatalError() }
    }
    open var allowsExpensiveNetworkAccess: Bool {
        get { fatalError() }
        set { fatalError() }
    }
    open var allowsConstrainedNetworkAccess: Bool {
        get { fatalError() }
        set { fatalError() }
    }
    open var waitsForConnectivity: Bool {
        get { fatalError() }
        set { fatalError() }
    }
    open var isDiscretionary: Bool {
        get { fatalError() }
        set { fatalError() }
    }
    open var sharedContainerIdentifier: String? {
        get { fatalError() }
        set { fatalError() }
    }
    open var sessionSendsLaunchEvents: Bool {
        get { fatalError() }
        set { fatalError() }
    }
    open var httpShouldUsePipelining: Bool {
        get { fatalError() }
        set { fatalError() }
    }
    open var httpShouldSetCookies: Bool {
        get { fatalError() }
        set { fatalError() }
    }
    open var httpAdditionalHeaders: [AnyHashable: Any]? {
        get { fatalError() }
        set { fatalError() }
    }
    open var httpMaximumConnectionsPerHost: Int {
        get { fatalError() }
        set { fatalError() }
    }
    open var httpCookieStorage: HTTPCookieStorage? {
        get { fatalError() }
        set { fatalError() }
    }
    open var urlCredentialStorage: URLCredentialStorage? {
        get { fatalError() }
        set { fatalError() }
    }
    open var urlCache: URLCache? {
        get { fatalError() }
        set { fatalError() }
    }
    open var protocolClasses: [AnyClass]? {
        get { fatalError() }
        set { fatalError() }
    }
    #if !os(macOS)
    open var multipathServiceType: MultipathServiceType {
        get { fatalError() }
        set { fatalError() }
    }
    public enum MultipathServiceType: Int, Sendable { case none, handover, interactive, aggregate }
    #endif
    public func copy(with zone: NSZone? = nil) -> Any { fatalError() }
}

open class URLProtocol: NSObject {
    open class func canInit(with request: URLRequest) -> Bool { fatalError() }
    open class func canInit(with task: URLSessionTask) -> Bool { fatalError() }
}

open class URLSession: NSObject, @unchecked Sendable {
    public enum AuthChallengeDisposition: Int, Sendable {
        case useCredential, performDefaultHandling, cancelAuthenticationChallenge, rejectProtectionSpace
    }
    public enum ResponseDisposition: Int, Sendable { case cancel, allow, becomeDownload, becomeStream }
    public enum DelayedRequestDisposition: Int, Sendable { case continueLoading, useNewRequest, cancel }
    public static let invalidSessionFlag = false
    open class var shared: URLSession { fatalError() }
    public init(configuration: URLSessionConfiguration) { fatalError() }
    public init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?,
        delegateQueue queue: OperationQueue?
    ) { fatalError() }
    open var delegateQueue: OperationQueue { fatalError() }
    open var delegate: (any URLSessionDelegate)? { fatalError() }
    open var configuration: URLSessionConfiguration { fatalError() }
    open var sessionDescription: String? {
        get { fatalError() }
        set { fatalError() }
    }
    open func finishTasksAndInvalidate() { fatalError() }
    open func invalidateAndCancel() { fatalError() }
    open func reset(completionHandler: @escaping @Sendable () -> Void) { fatalError() }
    open func flush(completionHandler: @escaping @Sendable () -> Void) { fatalError() }
    open func getTasksWithCompletionHandler(
        _ completionHandler:
            @escaping @Sendable ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) -> Void
    ) { fatalError() }
    open func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) { fatalError() }
    open var allTasks: [URLSessionTask] { get async { fatalError() } }
    open func dataTask(with request: URLRequest) -> URLSessionDataTask { fatalError() }
    open func dataTask(with url: URL) -> URLSessionDataTask { fatalError() }
    open func uploadTask(with request: URLRequest, fromFile fileURL: URL) -> URLSessionUploadTask { fatalError() }
    open func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask { fatalError() }
    @available(macOS 14.0, iOS 17.0, watchOS 10.0, tvOS 17.0, visionOS 1.0, *)
    open func uploadTask(withResumeData resumeData: Data) -> URLSessionUploadTask { fatalError() }
    open func uploadTask(withStreamedRequest request: URLRequest) -> URLSessionUploadTask { fatalError() }
    open func data(for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil) async throws -> (
        Data, URLResponse
    ) { fatalError() }
}

open class URLSessionTask: NSObject, @unchecked Sendable {
    public enum State: Int, Sendable { case running, suspended, canceling, completed }
    open var taskIdentifier: Int { fatalError() }
    open var originalRequest: URLRequest? { fatalError() }
    open var currentRequest: URLRequest? { fatalError() }
    open var response: URLResponse? { fatalError() }
    open var delegate: (any URLSessionTaskDelegate)? {
        get { fatalError() }
        set { fatalError() }
    }
    open var progress: Progress { fatalError() }
    open var earliestBeginDate: Date? {
        get { fatalError() }
        set { fatalError() }
    }
    open var countOfBytesClientExpectsToSend: Int64 {
        get { fatalError() }
        set { fatalError() }
    }
    open var countOfBytesClientExpectsToReceive: Int64 {
        get { fatalError() }
        set { fatalError() }
    }
    open var countOfBytesReceived: Int64 { fatalError() }
    open var countOfBytesSent: Int64 { fatalError() }
    open var countOfBytesExpectedToSend: Int64 { fatalError() }
    open var countOfBytesExpectedToReceive: Int64 { fatalError() }
    open var taskDescription: String? {
        get { fatalError() }
        set { fatalError() }
    }
    open func cancel() { fatalError() }
    open var state: URLSessionTask.State { fatalError() }
    open var error: (any Error)? { fatalError() }
    open func suspend() { fatalError() }
    open func resume() { fatalError() }
    open var priority: Float {
        get { fatalError() }
        set { fatalError() }
    }
}
open class URLSessionDataTask: URLSessionTask, @unchecked Sendable {}
open class URLSessionUploadTask: URLSessionDataTask, @unchecked Sendable {
    @available(macOS 14.0, iOS 17.0, watchOS 10.0, tvOS 17.0, visionOS 1.0, *)
    open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) { fatalError() }
}
extension URLSessionTask {
    public class var defaultPriority: Float { fatalError() }
    public class var lowPriority: Float { fatalError() }
    public class var highPriority: Float { fatalError() }
}
open class URLSessionDownloadTask: URLSessionTask, @unchecked Sendable {}
open class URLSessionTaskMetrics: NSObject, @unchecked Sendable {}

// In Objective-C the methods of delegates are optional, and one whose name or types are not quite right is never
// called. Here the protocols are empty, and each method has its own protocol: a file of Assertions says which of them a
// class means to implement, and the compiler says whether it does.

public protocol URLSessionDelegate: NSObjectProtocol, Sendable {}
public protocol URLSessionTaskDelegate: URLSessionDelegate {}
public protocol URLSessionDataDelegate: URLSessionTaskDelegate {}

public protocol Implements_didBecomeInvalid: URLSessionDelegate {
    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?)
}
public protocol Implements_didFinishEvents: URLSessionDelegate {
    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession)
}
public protocol Implements_taskIsWaitingForConnectivity: URLSessionTaskDelegate {
    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask)
}
public protocol Implements_willBeginDelayedRequest: URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void)
}
public protocol Implements_didReceiveSessionChallenge: URLSessionDelegate {
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)
}
public protocol Implements_willPerformHTTPRedirection: URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void)
}
public protocol Implements_didReceiveChallenge: URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)
}
public protocol Implements_needNewBodyStream: URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void)
}
public protocol Implements_needNewBodyStreamFrom: URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
        completionHandler: @escaping @Sendable (InputStream?) -> Void)
}
public protocol Implements_didSendBodyData: URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64)
}
public protocol Implements_didReceiveInformationalResponse: URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse)
}
public protocol Implements_didCompleteWithError: URLSessionTaskDelegate {
    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
}
public protocol Implements_didReceiveResponse: URLSessionDataDelegate {
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void)
}
public protocol Implements_didReceiveData: URLSessionDataDelegate {
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data)
}
