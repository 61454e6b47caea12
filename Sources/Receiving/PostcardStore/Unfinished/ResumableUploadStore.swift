public import PostcardFoundation

/// A store that also keeps uploads that arrive in several requests (draft-ietf-httpbis-resumable-upload).
///
/// The upload routes offer resumption for every store that conforms to this protocol, such as ``LocalUploadStore``. A
/// store that wraps another store forwards these three functions.
///
/// An unfinished upload contains the bytes of an incomplete form. When the form is complete, the routes read it, commit
/// it like any other form through ``UploadStore/beginUpload(under:announcedBytes:)``, and replace the bytes with the
/// response. A store that deletes a record also discards the unfinished uploads whose response shows the record.
public protocol ResumableUploadStore: UploadStore {
    /// The type of an unfinished upload.
    associatedtype Unfinished: UnfinishedUpload

    /// Creates an upload without bytes, which survives a restart once the call returns.
    ///
    /// - Parameters:
    ///   - id: The identifier with which ``unfinishedUpload(_:)`` finds the upload. It is a secret of the client.
    ///   - form: The known facts about the form.
    ///   - expires: The time at which the upload is discarded, finished or not.
    /// - Throws: ``UploadStoreError`` if the store is full or fails.
    func createUnfinishedUpload(
        _ id: ResumptionID, of form: UnfinishedForm, expires: Date
    ) async throws -> Unfinished

    /// The unfinished uploads from before a restart, which use space too. The routes call this function once, before
    /// the first upload is created. A store that several processes share returns none, because each process only counts
    /// the uploads that it appends to.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func unfinishedUploads() async throws -> [Unfinished]

    /// Finds an unfinished upload; `nil` if it does not exist or has expired. Callers in a process share one object.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func unfinishedUpload(_ id: ResumptionID) async throws -> Unfinished?
}

/// The identifier of an unfinished upload: 32 lower-case letters and digits, 160 random bits in Crockford's base 32.
///
/// Anyone who knows the identifier can resume or discard the upload, so it is never written to a log.
public struct ResumptionID: Sendable, Hashable {
    /// The identifier as text, as in paths.
    public let text: String

    /// Parses an identifier.
    ///
    /// - Returns: `nil` if the text is not an identifier. Identifiers contain no special characters of file systems.
    public init?(_ text: some StringProtocol) {
        let bytes = text.utf8
        guard bytes.count == Self.length, bytes.allSatisfy(Self.alphabet.contains) else { return nil }
        self.text = String(text)
    }

    private init(text: String) {
        self.text = text
    }

    package static func random() -> ResumptionID {
        var generator = SystemRandomNumberGenerator()
        let characters = (0..<length).map { _ in alphabet[Int.random(in: 0..<alphabet.count, using: &generator)] }
        return ResumptionID(text: String(decoding: characters, as: UTF8.self))
    }

    /// The first characters of the identifier, for a log: enough to distinguish uploads without revealing it.
    package var loggedText: String { text.prefix(6) + "…" }

    package static let length = 32
    private static let alphabet = Array("0123456789abcdefghjkmnpqrstvwxyz".utf8)
}

/// The known facts about a form that is incomplete.
public struct UnfinishedForm: Sendable, Hashable {
    /// The valid times at which an upload is created or expires. Calculations with later times may overflow.
    package static let possibleTimes =
        Date(timeIntervalSince1970: 0)...Date(timeIntervalSince1970: 253_402_300_799)

    /// The Content-Type of the form, with its boundary.
    public let contentType: String
    /// The key under which the form becomes a record.
    public let key: UploadKey
    /// The length of the body, in bytes; `nil` until a request declares it.
    public var length: Int64?
    /// The value of `Repr-Digest`, which is compared with the digest of the whole form (RFC 9530 §3).
    public var reprDigest: String?
    /// The value of `Want-Repr-Digest`, if the client asks for the digest of the whole form (RFC 9530 §4).
    public var wantReprDigest: String?
    /// The Content-Disposition parameters that name a file sent without a form (`UploadOptions.acceptsAnyBody`).
    public var fileParameters: String?
    /// The client that created the upload, whose limits the upload uses; `nil` if the client is unknown.
    package var client: PeerAddress?

    /// Makes the facts about a form.
    public init(
        contentType: String, key: UploadKey, length: Int64?, reprDigest: String? = nil, wantReprDigest: String? = nil
    ) {
        self.contentType = contentType
        self.key = key
        self.length = length
        self.reprDigest = reprDigest
        self.wantReprDigest = wantReprDigest
    }
}

/// The options of unfinished uploads, which clients can resume (draft-ietf-httpbis-resumable-upload).
public struct UnfinishedUploadOptions: Sendable, Hashable {
    /// How long after its creation an upload can be resumed, and its response requested again. Afterwards, its bytes
    /// and its response are removed. Defaults to one day.
    public var lifetime: Duration = .seconds(24 * 60 * 60)

    /// The maximum number of unfinished uploads. Defaults to 1,000. `UploadOptions.clientShare` limits each address.
    /// Further forms are received without resumption, or refused if only their beginning is sent.
    ///
    /// An upload is kept until its ``lifetime`` is over, or until a limit is reached. At a limit, old uploads that no
    /// request uses may be discarded. An upload is old after the time that its bytes would take to arrive at 500 bytes
    /// per second. If there are too many uploads, the address with the most uploads loses one upload. If no address has
    /// more than that of the new upload, the new upload's own address loses one. If there are too many bytes, only the
    /// new upload's own address loses uploads.
    public var maximumUnfinished = 1000

    /// The maximum total size of all unfinished uploads, in bytes. Defaults to 16 GiB: four forms of the default
    /// maximum size. `UploadOptions.clientShare` limits each client address. For that limit, the whole length of an
    /// upload counts once a request declares it.
    public var maximumUnfinishedBytes: Int64 = 16 << 30

    /// The maximum number of responses that are kept for clients that missed them. Beyond the maximum, the address with
    /// the most responses loses its oldest. Defaults to 10,000.
    public var maximumKeptResponses = 10_000

    /// The interim responses that clients get while their form arrives. Defaults to ``InterimResponses/auto``.
    public var interimResponses = InterimResponses.auto

    /// How long a form must be incomplete before its client gets an interim response with the address of the upload.
    /// With 0, the response is sent before the body is read. Defaults to 1 second: most small forms arrive faster.
    public var announcementDelay: Duration = .seconds(1)

    /// How long after the beginning of a request its client gets the first interim response with the number of stored
    /// bytes. Two more follow, each after twice the time. Further ones are not sent, because some proxies end a request
    /// after five interim responses. Defaults to 5 seconds.
    public var progressInterval: Duration = .seconds(5)

    /// The origin in the `Location` of an unfinished upload, such as `https://example.org`, for clients that cannot
    /// resolve a relative one (RFC 9110 §10.2.2). Defaults to `nil`: only the path, which is correct behind any proxy.
    public var locationOrigin: String?

    /// The interim responses with the status 104 (Upload Resumption Supported) that a client gets.
    ///
    /// Proxies that do not know the status mistake it for the final response, as nginx does with HTTP/1.1 upstreams.
    /// Clients that create an upload with an empty request need no interim response.
    public enum InterimResponses: String, Sendable, Hashable, CaseIterable {
        /// Interim responses are sent if the request has `Upload-Draft-Interop-Version` and its body takes longer than
        /// ``UnfinishedUploadOptions/announcementDelay``. An HTTP/1.1 connection is then closed after the final
        /// response, for proxies that mistook the interim response for the final one.
        case auto
        /// No interim responses are sent.
        case never
    }

    /// Makes options with the default values.
    public init() {}
}
