import HTTPTypes
import PostcardWire
import PostcardStore

/// The interim responses to a request that creates an unfinished upload or appends to one (§5 of the draft): first the
/// address of the upload, then, from time to time, how many bytes are stored.
///
/// A request without `Upload-Draft-Interop-Version`, or with one that is still to come, gets none, as the draft demands.
/// Nor does an empty one, because its final response follows at once.
struct InterimReports {
    private let connection: (any RequestConnection)?
    private let version: ResumptionVersion
    private let location: String?
    private let limits: UploadLimits
    private let delay: Duration
    private var interval: Duration
    private var last = ContinuousClock.now
    /// How many reports may still follow. Proxies give up on a request with more than about five interim responses.
    private var reportsLeft = 3

    /// - Parameters:
    ///   - location: The address of the upload; `nil` for a request that appends, whose client knows it.
    ///   - limits: The limits of the upload.
    ///   - append: The request.
    ///   - connection: The connection of the request.
    ///   - options: Which interim responses clients get, and when.
    init(
        to location: String?, _ limits: UploadLimits, _ append: AppendRequest, on connection: (any RequestConnection)?,
        _ options: UnfinishedUploadOptions
    ) {
        let isAllowed =
            options.interimResponses == .auto && append.version.interopNumber != nil && append.contentLength != 0
            && connection?.informs == true
        self.connection = isAllowed ? connection : nil
        version = append.version
        self.location = location
        self.limits = limits
        delay = options.announcementDelay
        interval = options.progressInterval
    }

    /// Sends the address once the request has been incomplete for a while.
    ///
    /// - Returns: What to cancel once the request is complete.
    func announce() async throws -> (@Sendable () -> Void)? {
        guard let connection, let location else { return nil }
        var head = head
        head.headerFields[.location] = location
        head.headerFields.setUploadLimits(limits, in: version)
        guard delay > .zero else {
            try await connection.inform(head)
            return nil
        }
        return connection.inform(head, after: delay)
    }

    /// Whether a report of the progress is due now. The versions before the fifth know no such report.
    func isDue(at now: ContinuousClock.Instant) -> Bool {
        connection != nil && reportsLeft > 0 && version.has(.progressReports) && last.duration(to: now) >= interval
    }

    /// Reports the bytes that the client need not send again.
    mutating func report(_ progress: UnfinishedUploadProgress) async throws {
        last = .now
        interval *= 2
        reportsLeft -= 1
        guard case .unfinished(let offset) = progress else { return }
        var head = head
        head.headerFields.uploadOffset = offset
        try await connection?.inform(head)
    }

    private var head: HTTPResponse {
        var head = HTTPResponse(status: .uploadResumptionSupported)
        head.headerFields.setResumptionVersion(version)
        return head
    }
}
