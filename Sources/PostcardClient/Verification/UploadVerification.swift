import PostcardForm

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Compares what a server says it has received with what was sent.
///
/// ```swift
/// var client = UploadClient()
/// client.verification = .record
/// ```
///
/// Each part is hashed with SHA-256 while it goes out. Where the server has something else, the upload ends with
/// ``UploadError/Code/altered``, whose message names the files; it is not tried again, because the server has
/// stored a form.
public struct UploadVerification: Sendable {
    private let differing: @Sendable ([SentPart], UploadResponse) throws -> [SentPart]

    /// Makes a verification for servers whose answer says in a way of its own what came.
    ///
    /// ```swift
    /// client.verification = UploadVerification { parts, response in
    ///     let answer = try response.decode(Answer.self)
    ///     return parts.filter { $0.isFile && !answer.checksums.contains($0.sha256) }
    /// }
    /// ```
    ///
    /// - Parameter differing: Finds the parts that the server does not have as they were sent. What it throws is
    ///   the ``UploadError/underlying`` of the error with the code ``UploadError/Code/decoding`` that ends the upload.
    public init(
        findingDifferences differing: @escaping @Sendable ([SentPart], UploadResponse) throws -> [SentPart]
    ) {
        self.differing = differing
    }

    /// The parts that a server does not have as they were sent, as an error's ``UploadError/underlying`` has them.
    public struct Mismatch: Error, Sendable {
        /// The parts, in the form's order.
        public let parts: [SentPart]
    }

    /// Holds an answer to the form that it is about.
    ///
    /// - Throws: ``UploadError`` with the code ``UploadError/Code/altered``; with ``UploadError/Code/answeredEarly`` where
    ///   the answer came before the whole form was sent; with ``UploadError/Code/decoding`` where the comparison fails: the
    ///   server has the form all the same.
    func verify(_ response: UploadResponse, to request: UploadRequest) throws {
        guard let digests = request.body?.observer as? ContentDigests else { return }
        guard let parts = digests.sentParts else {
            throw UploadError.answeredEarly(response, by: request.url, of: request.body?.contentLength)
        }
        let differing: [SentPart]
        do {
            differing = try self.differing(parts, response)
        } catch let error as UploadError {
            throw error
        } catch {
            throw UploadError.decoding(response, as: "what it has received", error)
        }
        if !differing.isEmpty { throw UploadError.altered(differing, response, by: request.url) }
    }
}

extension UploadError {
    static func altered(_ parts: [SentPart], _ response: UploadResponse, by url: URL) -> UploadError {
        let names = parts.prefix(10).map(\.description).joined(separator: ", ")
        let more = parts.count > 10 ? ", and \(parts.count - 10) more" : ""
        return UploadError(
            .altered,
            "\(url.address) has not received as it was sent: \(names)\(more). "
                + "It has stored the form; remove it there before sending it again.",
            response: response, underlying: UploadVerification.Mismatch(parts: parts))
    }
}
