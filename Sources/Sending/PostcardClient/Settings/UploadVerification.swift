import Crypto
import PostcardForm
import PostcardFoundation
import PostcardWire

/// Compares the content that a server reports as received with the content that was sent.
///
/// ```swift
/// var client = UploadClient()
/// client.responses.verification = .record
/// ```
///
/// Each part is hashed with SHA-256 while it is sent. If the server received something else, the upload fails with
/// ``UploadError/Code/altered``, and the message names the files. The upload is not tried again, because the server has
/// stored a form.
///
/// If a response is accepted before the whole form was sent, the form is read to its end without being sent. A form
/// with a stream that can be read only once then fails with ``UploadError/Code/earlyResponse``.
public struct UploadVerification: Sendable {
    private let differing: @Sendable ([SentPart], UploadResponse) throws -> [SentPart]

    /// Makes a verification for servers that describe the received form in their own format.
    ///
    /// ```swift
    /// client.responses.verification = UploadVerification { parts, response in
    ///     let receipt = try response.decode(Receipt.self)
    ///     return parts.filter { $0.isFile && !receipt.checksums.contains($0.sha256) }
    /// }
    /// ```
    ///
    /// - Parameter differing: Returns the parts that the server received differently. If the closure throws an error,
    ///   the upload fails with the code ``UploadError/Code/decoding`` and that ``UploadError/underlyingError``.
    public init(
        findingDifferences differing: @escaping @Sendable ([SentPart], UploadResponse) throws -> [SentPart]
    ) {
        self.differing = differing
    }

    /// An error with the parts that a server received differently. It is the ``UploadError/underlyingError`` of an
    /// error with the code ``UploadError/Code/altered``.
    public struct Mismatch: Error, Sendable {
        /// The parts that the server received differently, in the form's order.
        public let parts: [SentPart]
    }

    /// Compares a response with the form that was sent.
    ///
    /// - Throws: ``UploadError`` with the code ``UploadError/Code/altered``; with ``UploadError/Code/earlyResponse`` if
    ///   the whole form was not read; with ``UploadError/Code/decoding`` if the response cannot be compared. Even
    ///   then the server has the form.
    func verify(_ response: UploadResponse, to request: UploadRequest) throws {
        guard let digests = request.body?.digests else { return }
        guard let parts = digests.sentParts else {
            throw UploadError.earlyResponse(response, by: request.url, of: request.body?.contentLength)
        }
        let differing: [SentPart]
        do {
            differing = try self.differing(parts, response)
        } catch let error as UploadError {
            throw error
        } catch {
            throw UploadError.notComparable(response, by: request.url, error)
        }
        if !differing.isEmpty { throw UploadError.altered(differing, response, by: request.url) }
    }
}

extension UploadVerification {
    /// A verification for `postcard serve`, which responds with a record of the received form: the size and the SHA-256
    /// of every file, and the texts, in the order in which they were sent. A response without such a record fails the
    /// upload with the code ``UploadError/Code/decoding``.
    public static let record = UploadVerification { parts, response in
        guard let record = Record(response.body) else { throw NoRecord() }
        return record.differences(from: parts)
    }

    /// The reason why a response without the record of `postcard serve` cannot be compared.
    private struct NoRecord: LocalizedError {
        var errorDescription: String? {
            "it has no digests of the fields and files, as the response of postcard serve has"
        }
    }

    /// The record of a form that the server received.
    private struct Record {
        /// The contents of the text fields as the server stored them.
        let fields: [[UInt8]]
        let files: [(size: Int64, sha256: [UInt8])]

        /// Reads the record in a response's body. Returns `nil` if the body has no record.
        init?(_ body: Data) {
            let json = try? JSON(body)
            guard let fields = json?["fields"]?.elements, let files = json?["files"]?.elements else { return nil }
            self.fields = fields.compactMap { field in
                guard let base64 = field["base64"]?.string else { return field["value"]?.string }
                return Data(base64Encoded: Data(base64)).map { Array($0) }
            }
            self.files = files.compactMap { file in
                guard let size = file["size"]?.integer, let sha256 = file["sha256"]?.string else { return nil }
                return (size, sha256)
            }
            guard self.fields.count == fields.count, self.files.count == files.count else { return nil }
        }

        /// The parts that differ from the record. Names are not compared, because a server changes them: it removes the
        /// path of a filename, and undoes escapes.
        func differences(from parts: [SentPart]) -> [SentPart] {
            var fields = fields[...]
            var files = files[...]
            return parts.filter { part in
                if part.isFile {
                    guard let file = files.popFirst() else { return true }
                    return file.size != part.size || !file.sha256.isEqualIgnoringCase(part.sha256)
                }
                guard let field = fields.popFirst() else { return true }
                return SHA256.hash(data: Data(field)).hexadecimal != part.sha256
            }
        }
    }
}

extension UploadError {
    /// The server has the form, but its response does not describe the received form.
    static func notComparable(_ response: UploadResponse, by url: URL, _ error: any Error) -> UploadError {
        let reason = (error as? any LocalizedError)?.errorDescription ?? reason(of: error)
        return UploadError(
            .decoding,
            "\(url.address) accepted the form, but its response cannot be compared with what was sent: \(reason).",
            response: response, underlyingError: error)
    }

    static func altered(_ parts: [SentPart], _ response: UploadResponse, by url: URL) -> UploadError {
        let names = parts.prefix(10).map(\.description).joined(separator: ", ")
        let more = parts.count > 10 ? ", and \(parts.count - 10) more" : ""
        return UploadError(
            .altered,
            "\(url.address) did not receive as it was sent: \(names)\(more). "
                + "It has stored the form: delete it there before sending it again.",
            response: response, underlyingError: UploadVerification.Mismatch(parts: parts))
    }
}
