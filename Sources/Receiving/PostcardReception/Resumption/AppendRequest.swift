import HTTPTypes
import PostcardForm
import PostcardStore
import PostcardWire

/// The header fields of a request that creates or extends an upload (draft-ietf-httpbis-resumable-upload).
struct AppendRequest {
    let version: ResumptionVersion
    /// Whether the request contains the last bytes of the upload.
    let isComplete: Bool
    /// The offset in the upload at which the bytes of the request begin.
    let offset: Int64
    /// The length of the request's body, in bytes; `nil` if the request does not declare it.
    let contentLength: Int64?
    /// The length of the whole upload, in bytes; `nil` if the request does not declare it.
    private let uploadLength: Int64?

    /// Whether a request with a form asks for a resumable upload, or contains only the beginning of the form.
    static func isAsked(by request: IncomingRequest) -> Bool {
        request.headers.contains(.uploadComplete) || request.headers.contains(.uploadIncomplete)
    }

    /// Advice for a client that asks for resumption with wrong header fields; `nil` if the fields follow a known
    /// version of the draft.
    static func advice(for request: IncomingRequest) -> String? {
        let fields = request.headers
        guard let version = ResumptionVersion(of: fields) else {
            let latest = ResumptionVersion.latestNumbered.interopNumber ?? 0
            return "To resume the form, send 3 to \(latest) in Upload-Draft-Interop-Version, or leave it out."
        }
        guard fields.uploadCompleteness(in: version) == nil else { return nil }
        let name = version.has(.completeField) ? "Upload-Complete" : "Upload-Incomplete"
        return "To resume the form, send ?0 or ?1 in \(name)."
    }

    /// Reads a request that creates an upload. Returns `nil` if the upload cannot be resumed.
    init?(creatingBy request: IncomingRequest) throws(UploadProblem) {
        let fields = request.headers
        guard let version = ResumptionVersion(of: fields) else {
            let saysIncomplete = [ResumptionVersion.interop3, .newest].contains { version in
                fields.uploadCompleteness(in: version) == false
            }
            // An incomplete form must not be received as a whole form.
            guard !saysIncomplete else { throw .unknownResumptionVersion }
            return nil
        }
        guard let isComplete = fields.uploadCompleteness(in: version) else { return nil }
        self.version = version
        self.isComplete = isComplete
        offset = 0
        contentLength = fields[.contentLength].flatMap { Int64($0) }
        uploadLength = fields.uploadLength
    }

    /// Reads a request that appends to an upload. `version` is the version of the draft that the request follows.
    init(appendingBy request: IncomingRequest, in version: ResumptionVersion) throws(UploadProblem) {
        let fields = request.headers
        if version.has(.partialUploadType) {
            let type = fields[.contentType]?.utf8.prefix { $0 != .semicolon }
            guard type?.isEqualIgnoringCase(PartialUpload.mediaType) == true else { throw .notPartialUpload }
        }
        if let encoding = fields[.contentEncoding], !encoding.utf8.isEqualIgnoringCase("identity") {
            throw .encodedContent
        }
        guard let offset = fields.uploadOffset else { throw .missingUploadOffset }
        let isComplete = fields.uploadCompleteness(in: version)
        guard let isComplete = isComplete ?? (version.has(.appendCompleteness) ? nil : true) else {
            throw .missingUploadComplete
        }
        self.version = version
        self.isComplete = isComplete
        self.offset = offset
        contentLength = fields[.contentLength].map { Int64($0) ?? .max }
        uploadLength = fields.uploadLength
    }

    /// The length of the upload; `nil` if neither this nor an earlier request declares it. `known` is the length that
    /// an earlier request declared. Throws ``UploadProblem`` if the lengths contradict each other or exceed `maximum`.
    func length(known: Int64?, maximum: Int64) throws(UploadProblem) -> Int64? {
        var lengths = Set([known, uploadLength].compactMap(\.self))
        let end = contentLength.map { content in
            let (end, isOver) = offset.addingReportingOverflow(content)
            return isOver ? .max : end
        }
        if isComplete, let end { lengths.insert(end) }
        guard lengths.count <= 1 else { throw .inconsistentLength }
        let length = lengths.first
        if let length, let end, end > length { throw .inconsistentLength }
        guard max(length ?? 0, end ?? 0) <= maximum else { throw .uploadTooLarge(maximum: maximum) }
        return length
    }
}

/// The interim responses to a request that creates or extends an upload (draft-ietf-httpbis-resumable-upload §5). The
/// first response contains the address of the upload. Later responses report how many bytes are stored.
///
/// As the draft requires, a request without `Upload-Draft-Interop-Version`, or with an unknown version, gets no interim
/// responses. An empty request gets none either, because its final response follows at once.
struct InterimReports {
    private let connection: (any RequestConnection)?
    private let version: ResumptionVersion
    private let location: String?
    private let limits: UploadLimits
    private let delay: Duration
    private var interval: Duration
    private var last = ContinuousClock.now
    /// The number of reports that may still be sent. Some proxies end a request after about five interim responses.
    private var reportsLeft = 3

    /// `location` is the address of the upload; `nil` for an append, whose client already knows the address.
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

    /// Sends the address of the upload if the request is still incomplete after the announcement delay. Returns a
    /// closure that cancels this response, to be called when the request is complete; `nil` if there is nothing to
    /// cancel.
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

    /// Whether a progress report is due. Versions before the fifth have no progress reports.
    func isDue(at now: ContinuousClock.Instant) -> Bool {
        connection != nil && reportsLeft > 0 && version.has(.progressReports) && last.duration(to: now) >= interval
    }

    /// Reports the number of stored bytes, which the client need not send again.
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
