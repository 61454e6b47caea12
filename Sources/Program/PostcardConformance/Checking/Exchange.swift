import HTTPTypes
import PostcardWire

/// A request and the responses to it.
struct Exchange: Sendable {
    let method: String
    var interim: [RawResponse] = []
    /// The final response; `nil` if there was none.
    var final: RawResponse?
    /// The reason why there is no final response.
    var missing = "no response"
    /// The time from the pause in the content to the first 104.
    var announcementDelay: Duration?
    /// The number of content bytes that were sent.
    var sentBytes = 0

    /// The interim responses with status 104.
    var announcements: [RawResponse] { interim.filter { $0.status == 104 } }

    /// A line of text about all responses.
    var summary: String {
        var words = "\(method): "
        for response in interim { words += "\(Self.describe(response)), then " }
        return words + (final.map(Self.describe) ?? missing)
    }

    private static let shown: Set<HTTPField.Name> = [
        .uploadOffset, .uploadComplete, .uploadIncomplete, .uploadLength, .uploadLimit, .uploadDraftInteropVersion,
        .location, .cacheControl,
    ]

    private static func describe(_ response: RawResponse) -> String {
        let fields = response.fields.filter { shown.contains($0.name) }.map { "\($0.name): \($0.value.prefix(100))" }
        return fields.isEmpty ? "\(response.status)" : "\(response.status) (\(fields.joined(separator: "; ")))"
    }
}

/// Facts about the server and earlier requests, for judging a response.
struct Evidence: Sendable {
    /// The number of bytes in the content of the check.
    var contentBytes: Int
    /// The status and media type of the response to an upload of the content in one ordinary request.
    var conventional: (status: Int, contentType: String?)?
    /// The limits that the server has announced, for the URL and for uploads.
    var limits: KnownLimits
    /// The last offset that the server sent in this check.
    var seenOffset: Int64?
    /// The earlier requests of the same check.
    var earlier: [Exchange] = []
    /// The version of the resumable upload draft that the check's requests follow.
    var version: ResumptionVersion

    func position(_ extent: Extent) -> Int64? {
        extent.position(in: contentBytes, seen: seenOffset).map { Int64($0) }
    }
}

/// The limits that a server has announced, in the order in which a client receives them.
struct KnownLimits: Sendable {
    var ofOptions: UploadLimits?
    var ofCreation: UploadLimits?
    var ofHead: UploadLimits?

    var all: [UploadLimits] { [ofOptions, ofCreation, ofHead].compactMap(\.self) }
    var areEmpty: Bool { all.isEmpty }
    var maximumBytes: Int64? { all.compactMap(\.maximumBytes).min() }
    var maximumAppendBytes: Int64? { all.compactMap(\.maximumAppendBytes).min() }
    var minimumAppendBytes: Int64? { all.compactMap(\.minimumAppendBytes).max() }
    var minimumBytes: Int64? { all.compactMap(\.minimumBytes).max() }
}

/// Facts about the server from the requests before the checks and from earlier checks.
struct ServerKnowledge {
    var limits = KnownLimits()
    /// The responses to uploads of contents in one ordinary request.
    var conventional: [UploadContent.Kind: (status: Int, contentType: String?)] = [:]
    /// Whether the server sends a 104 when an upload is created, and after how long.
    var announcement = Announcement.unknown
    /// Whether the server sends a 104 while it receives an append.
    var progress = Announcement.unknown
    /// The last slow append. All sentences about its responses use this append, because repeating it takes long.
    var slowAppend: Exchange?

    enum Announcement {
        case unknown
        case never
        case sent(after: Duration)
    }

    /// How long to wait before concluding that the server sends no 104: twice as long as an earlier 104 took, but at
    /// least `shortest`.
    func quietTime(atLeast shortest: Duration) -> Duration {
        guard case .sent(let delay) = announcement else { return shortest }
        return max(delay * 2, shortest)
    }
}
