import PostcardResumption
import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// How a server takes uploads that can be resumed.
struct ResumptionOffer: Sendable, Hashable {
    let version: ResumptionVersion
    let limits: UploadLimits

    /// Whether an upload of so many bytes is one that can be resumed.
    func takes(_ length: Int64) -> Bool {
        length >= limits.minimumBytes ?? 0 && length <= limits.maximumBytes ?? .max
    }
}

/// What servers have said of resumable uploads, so that they are not asked before every form.
final class ResumptionOffers: Sendable {
    /// A server that learns to resume is found out within this time.
    private static let lifetime = Duration.seconds(3600)

    /// No program sends to more addresses at a time; what is forgotten is asked again.
    private static let maximumCount = 1000

    private struct Answer {
        /// `nil` where the server knows no resumable uploads.
        let offer: ResumptionOffer?
        let time: ContinuousClock.Instant
    }

    private let answers = Mutex<[String: Answer]>([:])

    /// What is known of an address; `nil` where it has to be asked, and a `nil` within where it offers nothing.
    func answer(of url: URL) -> ResumptionOffer?? {
        answers.withLock { answers in
            guard let answer = answers[Self.key(url)], .now - answer.time < Self.lifetime else { return nil }
            return .some(answer.offer)
        }
    }

    func note(_ offer: ResumptionOffer?, of url: URL) {
        answers.withLock { answers in
            if answers.count >= Self.maximumCount { answers.removeAll() }
            answers[Self.key(url)] = Answer(offer: offer, time: .now)
        }
    }

    private static func key(_ url: URL) -> String {
        "\(url.scheme?.lowercased() ?? "")://\(url.address.lowercased())\(url.path(percentEncoded: true))"
    }
}
