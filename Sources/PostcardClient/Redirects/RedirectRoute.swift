import HTTPTypes
import PostcardForm

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The way of an attempt from one place to another.
struct RedirectRoute: Sendable {
    /// What is to be sent now.
    private(set) var request: UploadRequest

    /// Whether a server said that it has the form, and where to look for what became of it.
    private(set) var isAccepted = false

    /// Whether it has led to another origin than the caller's; it does not lead back.
    private(set) var hasLeftOrigin = false

    private let policy: RedirectPolicy
    private var count = 0

    init(_ request: UploadRequest, policy: RedirectPolicy) {
        self.request = request
        self.policy = policy
    }

    /// Goes on to where a response points.
    ///
    /// - Throws: ``UploadError`` with the code ``UploadError/Code/refused`` where it points nowhere, or where nobody
    ///   is to go.
    mutating func follow(_ response: UploadResponse) throws(UploadError) {
        guard (300..<400).contains(response.status.code), let location = response.headerFields[.location] else {
            var error = UploadError.refused(response, by: request.url)
            error.delivery = response.delivery(of: request.body)
            throw error
        }
        func refused(_ reason: String) -> UploadError {
            .refused(response, by: request.url, pointingTo: location, reason)
        }
        guard [301, 302, 303, 307, 308].contains(response.status.code) else {
            throw refused("This status is not followed; send the form there if that is right.")
        }
        guard case .follow(let maximum) = policy else {
            throw refused("Redirects are not followed; send the form there if that is right.")
        }
        if let unfollowed = Self.unfollowed[response.status.code] { throw refused(unfollowed) }
        guard count < maximum else {
            throw refused("It was redirected \(count) times before, and no more are followed.")
        }
        guard let url = URL(string: location, relativeTo: request.url)?.absoluteURL else {
            throw refused("That is no web address.")
        }
        if request.url.scheme?.lowercased() == "https", url.scheme?.lowercased() == "http" {
            throw refused("Nothing was sent there, because that address is not encrypted.")
        }
        let isSeeOther = response.status.code == 303
        if !isSeeOther, request.body?.isReplayable == false {
            throw refused("It was not sent there, because the form holds a stream that can be read only once.")
        }
        let isElsewhere = !url.hasOrigin(of: request.url)
        do throws(UploadError) {
            request = try UploadRequest(
                url: url, method: isSeeOther ? .get : request.method,
                headerFields: isElsewhere ? request.headerFields.harmless : request.headerFields,
                body: isSeeOther ? nil : request.body, maximumResponseBytes: request.maximumResponseBytes)
        } catch {
            throw refused("That is no web address.")
        }
        count += 1
        isAccepted = isAccepted || isSeeOther
        hasLeftOrigin = hasLeftOrigin || isElsewhere
    }

    private static let unfollowed = [
        301: "Some clients would ask there by GET, without the form, so it was not followed: send the form to that "
            + "address, or have the server answer 308.",
        302: "Some clients would ask there by GET, without the form, so it was not followed: send the form to that "
            + "address, or have the server answer 307, or 303 if it has the form.",
    ]
}

extension URL {
    /// Whether scheme, host and port are another URL's (RFC 6454 §4).
    func hasOrigin(of other: URL) -> Bool {
        scheme?.lowercased() == other.scheme?.lowercased() && address.lowercased() == other.address.lowercased()
    }
}

extension HTTPFields {
    /// The fields that may be shown to a stranger: what is sent, what is understood, and the key that has a retry
    /// recognized, which names this upload and nobody.
    var harmless: HTTPFields {
        filter { Self.harmlessNames.contains($0.name.canonicalName) }
    }

    private static let harmlessNames: Set<String> = [
        "accept", "accept-language", "content-digest", "content-encoding", "content-language", "content-type", "expect",
        "idempotency-key", "repr-digest", "upload-complete", "upload-draft-interop-version", "upload-incomplete",
        "upload-length", "upload-offset", "user-agent",
    ]
}
