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
