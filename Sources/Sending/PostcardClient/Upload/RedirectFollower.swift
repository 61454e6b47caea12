import HTTPTypes
import PostcardForm
import PostcardFoundation
import PostcardWire

/// Follows the redirects of one request.
struct RedirectFollower: Sendable {
    /// The request to send now.
    private(set) var request: UploadRequest

    /// Whether a server has responded with 303, so that it has the form and names the URL of the result.
    private(set) var isAccepted = false

    /// Whether a redirect has led to another origin than that of the caller's URL.
    private(set) var hasLeftOrigin = false

    private let policy: RedirectPolicy
    private var count = 0

    init(_ request: UploadRequest, policy: RedirectPolicy) {
        self.request = request
        self.policy = policy
    }

    /// Replaces the current request with the one that a response redirects to.
    ///
    /// - Throws: ``UploadError`` with the code ``UploadError/Code/refused`` if the response is not a redirect, or a
    ///   redirect that is not followed.
    mutating func follow(_ response: UploadResponse) throws(UploadError) {
        let isSeeOther = response.status.code == 303
        // A 303 means that the server has the form, even if the redirect is not followed.
        isAccepted = isAccepted || isSeeOther
        guard (300..<400).contains(response.status.code), let location = response.headerFields[.location] else {
            throw UploadError.refusedForm(response, by: request.url)
        }
        func refused(_ reason: String) -> UploadError {
            .refused(response, by: request.url, redirectingTo: location, reason)
        }
        guard [301, 302, 303, 307, 308].contains(response.status.code) else {
            throw refused("This status is not followed. Send the form there if that is right.")
        }
        guard case .follow(let maximum) = policy else {
            throw refused(
                isSeeOther
                    ? "The server has the form, and redirects are not followed."
                    : "Redirects are not followed. Send the form there if that is right.")
        }
        if let unfollowed = Self.unfollowed[response.status.code] { throw refused(unfollowed) }
        guard count < maximum else {
            throw refused("\(count) redirects were followed before it, and no more are.")
        }
        guard let url = URL(string: location, relativeTo: request.url)?.absoluteURL else {
            throw refused("That is not a web address.")
        }
        if request.url.scheme?.lowercased() == "https", url.scheme?.lowercased() == "http" {
            throw refused("Nothing was sent there, because that address is not encrypted.")
        }
        if !isSeeOther, request.body?.isReplayable == false {
            throw refused("The form was not sent there, because it has a stream that can be read only once.")
        }
        let isElsewhere = !url.hasOrigin(of: request.url)
        do throws(UploadError) {
            request = try UploadRequest(
                url: url, method: isSeeOther ? .get : request.method,
                headerFields: isElsewhere ? request.headerFields.harmless : request.headerFields,
                body: isSeeOther ? nil : request.body, maximumResponseBytes: request.maximumResponseBytes)
        } catch {
            throw refused("That is not a web address.")
        }
        count += 1
        hasLeftOrigin = hasLeftOrigin || isElsewhere
    }

    private static let unfollowed = [
        301: "Some clients would follow it with a GET, without the form, so it was not followed. Send the form to "
            + "that address, or have the server respond with 308.",
        302: "Some clients would follow it with a GET, without the form, so it was not followed. Send the form to "
            + "that address, or have the server respond with 307, or with 303 if it has the form.",
    ]
}
