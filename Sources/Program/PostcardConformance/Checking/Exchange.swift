import HTTPTypes
import PostcardWire

/// A request and the responses to it.
struct Exchange: Sendable {
    let method: String
    /// The responses before the final one, in order.
    var interim: [RawResponse] = []
    /// The final response; `nil` if there was none.
    var final: RawResponse?
    /// Why there is no final response.
    var missing = "no response"
    /// The time from the pause in the content to the first 104.
    var announcementDelay: Duration?
    /// The number of content bytes that were sent.
    var sentBytes = 0

    /// The interim responses 104.
    var announcements: [RawResponse] { interim.filter { $0.status == 104 } }

    /// What the responses say, in one line.
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

/// What the checks know of the server, and of the requests before the request that is judged.
struct Evidence: Sendable {
    /// The number of bytes in the content of the check.
    var contentBytes: Int
    /// The media type of the response to the content in one request, and its status.
    var conventional: (status: Int, contentType: String?)?
    /// The limits that the server announced for the URL and for uploads.
    var limits: KnownLimits
    /// The last offset that the server sent in this check.
    var seenOffset: Int64?
    /// The earlier requests of the same check.
    var earlier: [Exchange] = []
    /// The version of the draft that the check's requests follow.
    var version: ResumptionVersion

    func position(_ extent: Extent) -> Int64? {
        extent.position(in: contentBytes, seen: seenOffset).map { Int64($0) }
    }
}

/// The limits of a server, in the order in which a client learns them.
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

/// What a run knows of the server, from the requests before its checks and from earlier checks.
struct ServerKnowledge {
    var limits = KnownLimits()
    /// The responses to contents in one conventional request.
    var conventional: [UploadContent.Kind: (status: Int, contentType: String?)] = [:]
    /// Whether the server sends 104 to those who create an upload, and after how much time.
    var announcement = Announcement.unknown
    /// Whether the server sends 104 while an append is in progress.
    var progress = Announcement.unknown
    /// The last append that was sent slowly, which takes too long to be repeated for each sentence on its responses.
    var slowAppend: Exchange?

    enum Announcement {
        case unknown
        case never
        case sent(after: Duration)
    }

    /// How long to wait for a 104 that must not be sent: longer than one that may be sent takes.
    ///
    /// - Parameter shortest: The time to wait in any case.
    func quietTime(atLeast shortest: Duration) -> Duration {
        guard case .sent(let delay) = announcement else { return shortest }
        return max(delay * 2, shortest)
    }
}
