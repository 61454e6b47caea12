import HTTPTypes
import NIOCore
import PostcardCLibrary

/// The resources that clients share, and their names in refusals.
package enum SharedResource: Int, CaseIterable, Sendable {
    /// Open connections. If a client has used up its share, its next connection is closed without a response.
    case connections
    /// Open connections, counted for the clients in PROXY headers. The connections themselves belong to a proxy.
    case proxiedConnections
    /// Requests in progress, each with a task and buffers, because a client can cheaply open many HTTP/2 streams.
    case requests
    /// Forms that are being received, each with an open file, until their responses are sent.
    case uploads
    /// Bytes of text fields and names in memory, until their records are written and the responses made.
    case textBytes
    case unfinishedUploads
    /// Bytes of unfinished uploads on the disk.
    case unfinishedBytes
    /// Bytes of forms that became records while the store was more than a tenth over its limit.
    case excessBytes
    /// Responses read from the store, each with an open file.
    case responses
    /// Bytes of responses in memory.
    case responseBytes
    /// Listeners of live events.
    case listeners
    case screenings
    case thumbnails

    package var metricName: String {
        switch self {
        case .connections: "connections"
        case .proxiedConnections: "proxied_connections"
        case .requests: "requests"
        case .uploads: "uploads"
        case .textBytes: "text_bytes"
        case .unfinishedUploads: "unfinished_uploads"
        case .unfinishedBytes: "unfinished_bytes"
        case .excessBytes: "excess_bytes"
        case .responses: "responses"
        case .responseBytes: "response_bytes"
        case .listeners: "listeners"
        case .screenings: "screenings"
        case .thumbnails: "thumbnails"
        }
    }

    /// The smallest useful amount of the resource.
    package var unit: Int {
        switch self {
        // The smallest piece in which stored files are read.
        case .responseBytes: 4 << 10
        // The size of a small form, which uses three blocks of the disk.
        case .excessBytes: 12 << 10
        case .textBytes, .unfinishedBytes: 64 << 10
        case .connections, .proxiedConnections, .requests, .uploads, .unfinishedUploads, .responses, .listeners,
            .screenings, .thumbnails:
            1
        }
    }
}

/// The total amount of each shared resource.
package struct ShareLimits: Sendable {
    private var totals: [Int]
    /// The share of the free amount that one address may use, from 0 to 1.
    package var clientShare: Double

    /// Makes totals without limits. `clientShare` is the share of the free amount that one address may use, from 0 to
    /// 1.
    package init(clientShare: Double) {
        self.clientShare = clientShare
        totals = Array(repeating: .max, count: SharedResource.allCases.count)
    }

    package subscript(resource: SharedResource) -> Int {
        get { totals[resource.rawValue] }
        set { totals[resource.rawValue] = newValue }
    }

    func pool<Owner>(of resource: SharedResource) -> SharePool<Owner> {
        // Addresses are served in turn, so one client may use all processors that no other client needs.
        let share = [.screenings, .thumbnails].contains(resource) ? 1 : clientShare
        return SharePool(total: self[resource], share: share, unit: resource.unit)
    }
}

// MARK: - Refusals

extension SharedResource {
    private struct Refusal {
        let code: String
        let limit: String
        /// The name of the resource in a sentence, after a number.
        let noun: String
        /// Advice for an address that has used up its share; `nil` for none.
        let advice: String?
        var retryAfterSeconds = 5
    }

    private var refusal: Refusal {
        switch self {
        case .connections, .proxiedConnections:
            Refusal(
                code: "too-many-connections", limit: "maximumConnections", noun: "connections",
                advice: "Close connections that you do not use.")
        case .requests:
            Refusal(
                code: "too-many-requests", limit: "maximumConcurrentRequests", noun: "requests in progress",
                advice: "Send fewer requests at once.")
        case .uploads:
            Refusal(
                code: "too-many-uploads", limit: "maximumConcurrentUploads", noun: "forms at once",
                advice: "Send fewer forms at once.")
        case .textBytes:
            Refusal(
                code: "too-much-text", limit: "maximumHeldBytes",
                noun: "bytes of text in forms that are being received",
                advice: "Send fewer forms at once, with long texts as files.")
        case .unfinishedUploads:
            Refusal(
                code: "too-many-unfinished-uploads", limit: "maximumUnfinished", noun: "unfinished uploads",
                advice: "Finish or discard an upload, or send the form in one request.", retryAfterSeconds: 60)
        case .unfinishedBytes:
            Refusal(
                code: "too-many-unfinished-uploads", limit: "maximumUnfinishedBytes",
                noun: "bytes of unfinished uploads",
                advice: "Finish or discard an upload, or send the form in one request.", retryAfterSeconds: 60)
        case .excessBytes:
            Refusal(
                code: "store-over-limit", limit: "excessBytes",
                noun: "bytes beyond the limit of the store while older uploads are being removed", advice: nil)
        case .responses:
            Refusal(
                code: "too-many-answers", limit: "maximumConcurrentRequests", noun: "responses in progress",
                advice: "Read the responses before you send more requests.")
        case .responseBytes:
            Refusal(
                code: "too-many-answers", limit: "maximumHeldResponseBytes",
                noun: "bytes of responses that are not read",
                advice: "Read the responses before you send more requests.")
        case .listeners:
            Refusal(
                code: "too-many-listeners", limit: "maximumListeners", noun: "listeners",
                advice: "Close a page that shows this receiver, or request the list from time to time.",
                retryAfterSeconds: 30)
        case .screenings:
            Refusal(
                code: "too-many-screenings", limit: "maximumConcurrentScreenings", noun: "files that are screened",
                advice: "Send the form again in a moment.", retryAfterSeconds: 30)
        case .thumbnails:
            Refusal(
                code: "too-many-thumbnails", limit: "maximumConcurrentThumbnails", noun: "small pictures being made",
                advice: "Request the picture again in a moment.")
        }
    }

    /// Makes the refusal of a request when the resource is used up.
    func usedUp(total: Int) -> UploadProblem {
        let refusal = refusal
        return UploadProblem(
            status: .serviceUnavailable, code: UploadProblem.Code(rawValue: refusal.code),
            message: "All clients together may have \(total) \(refusal.noun), and there is no room for more.",
            advice: "Send the request again in a moment.",
            limit: UploadProblem.Limit(name: refusal.limit, value: Int64(total)),
            retryAfterSeconds: refusal.retryAfterSeconds, isOfShare: true)
    }

    /// Makes the refusal of a request whose address has used up its share. `limit` is the most that it may use now.
    func shareUsedUp(limit: Int) -> UploadProblem {
        let refusal = refusal
        return UploadProblem(
            status: .tooManyRequests, code: UploadProblem.Code(rawValue: refusal.code + "-of-client"),
            message: "Your address may have \(limit) \(refusal.noun) now, and there is no room for more.",
            advice: (refusal.advice.map { $0 + " " } ?? "")
                + "Behind a proxy, start the receiver with --trust-proxy and the proxy's address.",
            limit: UploadProblem.Limit(name: refusal.limit + "OfClient", value: Int64(limit)),
            retryAfterSeconds: refusal.retryAfterSeconds, isOfShare: true)
    }
}

/// The descriptors of the process, which limit how many files and connections it may have open.
package enum OpenFiles {
    #if canImport(Glibc)
    private static var resource: __rlimit_resource_t { __rlimit_resource_t(RLIMIT_NOFILE.rawValue) }
    #else
    private static var resource: Int32 { RLIMIT_NOFILE }
    #endif

    /// Raises the process's limit to the system's maximum. Many systems start processes with a limit of 1,024 or less.
    package static func allowAsManyAsPossible() {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return }
        #if canImport(Darwin)
        // rlim_max may be infinite, and setrlimit refuses more than OPEN_MAX.
        limit.rlim_cur = min(limit.rlim_max, rlim_t(OPEN_MAX))
        #else
        limit.rlim_cur = limit.rlim_max
        #endif
        // If raising the limit fails, the server accepts fewer connections.
        _ = setrlimit(resource, &limit)
    }

    /// The current limit of the process.
    private static var maximum: Int {
        var limit = rlimit()
        // A limit above a million counts as no limit.
        return getrlimit(resource, &limit) == 0 ? Int(min(limit.rlim_cur, 1 << 20)) : 1024
    }

    /// The number of descriptors for the receiver itself: three for each event loop, and a fixed number of others.
    static let reserve = 64 + 3 * System.coreCount

    /// The maximum number of connections. Each needs two descriptors, one of them for a file, besides the ``reserve``.
    package static var maximumConnections: Int { max((maximum - reserve) / 2, 8) }

    /// The number of connections that the receiver may have: the desired number, or fewer. Some descriptors must be
    /// left for the receiver itself and for requests, because libdispatch may end a process without free descriptors.
    package static func allowed(_ connections: Int) -> Int { allowed(connections, of: maximum) }

    /// - Parameter maximum: The number of files and connections that the process may have open.
    static func allowed(_ connections: Int, of maximum: Int) -> Int { min(connections, max(maximum - reserve - 8, 8)) }

    /// The total number of files that the requests of a number of connections may have open.
    package static func forRequests(connections: Int) -> Int { forRequests(connections: connections, of: maximum) }

    /// - Parameter maximum: The number of files and connections that the process may have open.
    static func forRequests(connections: Int, of maximum: Int) -> Int { max(maximum - reserve - connections, 8) }
}
