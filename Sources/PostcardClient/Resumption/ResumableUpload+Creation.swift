import HTTPTypes
import PostcardForm
import PostcardResumption

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

// MARK: - The creation of the upload resource

extension ResumableUpload {
    /// The problems of `postcard serve` when it cannot keep an incomplete form; in one request it may accept it.
    private static let noRoomCodes: Set = ["store-full", "too-many-unfinished-uploads"]

    /// The server was asked to make an upload resource, without any of the form yet.
    mutating func create(
        _ response: UploadResponse, from url: URL, _ offer: ResumptionOffer, _ resumption: inout Resumption
    ) -> Action {
        switch response.status.code {
        case 200..<300:
            guard let resource = resource(in: response.headerFields, from: url) else { break }
            resumption.create(resource, offer)
            return check(offer, resource, Extent(), &resumption)
        case 404, 405, 501: break
        case 503 where Self.noRoomCodes.contains(response.problem?["code"]?.text ?? ""):
            // Room comes back: the next form asks for a resource again.
            return sendWhole(&resumption)
        default:
            if response.status.kind == .serverError { note(response.announcement, offer, &resumption) }
            return .fail(refusal(response, by: url))
        }
        support = .unsupported
        return sendWhole(&resumption)
    }

    /// The creation was interrupted: the next attempt asks the upload resource if a 104 has named it.
    mutating func handle(
        _ error: UploadError, whileCreating offer: ResumptionOffer, _ resumption: inout Resumption
    ) -> Action {
        if !note(error.announcement, offer, &resumption), [.connectionLost, .timedOut].contains(error.code) {
            resumption.noteLostCreation()
        }
        return .fail(self.error(error, of: request.url))
    }

    /// Records the upload resource that a 104 has named.
    ///
    /// - Returns: Whether there is one.
    @discardableResult
    private func note(
        _ announcement: ResumptionAnnouncement?, _ offer: ResumptionOffer, _ resumption: inout Resumption
    ) -> Bool {
        guard let announcement, let resource = resource(in: announcement.headerFields, from: announcement.url) else {
            return false
        }
        resumption.create(resource, offer)
        return true
    }

    /// The upload resource in a response to the creation.
    private func resource(in fields: HTTPFields, from url: URL) -> URL? {
        guard let location = fields[.location],
            let resource = URL(string: location, relativeTo: url)?.absoluteURL, resource.host() != nil,
            // Behind a proxy that encrypts, a server may not know its own scheme.
            resource.scheme?.lowercased() == "https" || request.url.scheme?.lowercased() == "http"
        else { return nil }
        return resource
    }
}

