public import PostcardFoundation

/// A store that also keeps uploads that arrive in several requests (draft-ietf-httpbis-resumable-upload).
///
/// The upload routes offer resumption for every store that conforms. ``LocalUploadStore`` does; a store that wraps
/// another one forwards these three functions.
///
/// An unfinished upload holds the bytes of a form that has not arrived whole. When it has, the routes read it, commit
/// it as any other form through ``UploadStore/beginUpload(under:announcedBytes:)``, and replace the bytes by the
/// response. A store that deletes a record also discards the unfinished uploads whose response shows it.
public protocol ResumableUploadStore: UploadStore {
    /// What the store has of an upload that has not arrived whole.
    associatedtype Unfinished: UnfinishedUpload

    /// Creates an upload without bytes. When it returns, the upload survives a restart.
    ///
    /// - Parameters:
    ///   - id: The name that ``unfinishedUpload(_:)`` finds it by. It is a secret of the client.
    ///   - form: What is known about the form.
    ///   - expires: When the upload is discarded, finished or not.
    /// - Throws: ``UploadStoreError`` if there is no room on the disk, or the store fails.
    func createUnfinishedUpload(
        _ id: ResumptionID, of form: UnfinishedForm, expires: Date
    ) async throws -> Unfinished

    /// The uploads from before a restart that are not finished. It is called once, before the first upload is created,
    /// because they take up room too. A store that several processes share returns none: an upload takes up room of the
    /// processes that append to it.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func unfinishedUploads() async throws -> [Unfinished]

    /// The upload with the identifier; `nil` if there is none or it has expired. All callers in a process share one
    /// object for as long as one of them keeps it.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func unfinishedUpload(_ id: ResumptionID) async throws -> Unfinished?
}

/// The identifier of an unfinished upload: 32 lower-case letters and digits, 160 random bits in Crockford's base 32.
///
/// Anyone who knows it can resume or discard the upload, so it is never written to a log.
public struct ResumptionID: Sendable, Hashable {
    /// The identifier as it is written in paths.
    public let text: String

    /// Reads an identifier.
    ///
    /// - Returns: `nil` if the text is not one. An identifier holds no character that has a meaning to a file system.
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

    /// Enough characters to tell uploads apart in a log, and too few to guess the rest.
    package var loggedText: String { text.prefix(6) + "…" }

    /// How many characters an identifier has.
    package static let length = 32
    private static let alphabet = Array("0123456789abcdefghjkmnpqrstvwxyz".utf8)
}

/// What is known about a form before all of it has arrived.
public struct UnfinishedForm: Sendable, Hashable {
    /// When an upload can be created and expire. After the year 9999, what is counted from such a time may not fit into
    /// a number.
    package static let possibleTimes =
        Date(timeIntervalSince1970: 0)...Date(timeIntervalSince1970: 253_402_300_799)

    /// The form's Content-Type, with its boundary.
    public let contentType: String
    /// The key under which the form becomes a record.
    public let key: UploadKey
    /// The length of the body in bytes, once a request has said it.
    public var length: Int64?
    /// The value of `Repr-Digest`, with which the whole form is compared (RFC 9530 §3).
    public var reprDigest: String?
    /// The value of `Want-Repr-Digest`, if the client wants the digest of the whole form (RFC 9530 §4).
    public var wantReprDigest: String?
    /// The parameters of a Content-Disposition that name the file, if the upload is no form but a file
    /// (`UploadOptions.acceptsAnyBody`).
    public var fileParameters: String?
    /// The client that created the upload, which counts for its share; `nil` if it is not known.
    package var client: PeerAddress?

    /// Describes a form.
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

/// How unfinished uploads are kept, so that clients can resume them (draft-ietf-httpbis-resumable-upload).
public struct UnfinishedUploadOptions: Sendable, Hashable {
    /// How long an upload can be resumed, and its response requested again, counted from its creation. Defaults to one
    /// day. Its bytes and its response are then removed.
    public var lifetime: Duration = .seconds(24 * 60 * 60)

    /// How many uploads may be unfinished at once. Defaults to 1,000. One client address can have the share of them that
    /// `UploadOptions.clientShare` allows. A further form is received as one that cannot be resumed, or refused if the
    /// request is only its beginning.
    ///
    /// An upload is kept until its ``lifetime`` is over, unless another upload needs the room. Only an upload is
    /// discarded that no request uses, and that is older than its bytes would take at 500 bytes per second. If there are
    /// too many uploads, it is one of the address with the most such uploads, or one of the other upload's own address
    /// if no address has more. If there are too many bytes, it is one of the other upload's own address.
    public var maximumUnfinished = 1000

    /// The maximum size of all unfinished uploads together, in bytes. Defaults to 16 GiB, four of the largest forms.
    /// One client address can have the share of them that `UploadOptions.clientShare` allows. There, an upload counts
    /// with its length as soon as a request says it.
    public var maximumUnfinishedBytes: Int64 = 16 << 30

    /// How many responses are kept for clients that missed them. Defaults to 10,000. If there are too many, the oldest one
    /// of the address that has most is removed.
    public var maximumKeptResponses = 10_000

    /// Which interim responses clients get while their form arrives. Defaults to ``InterimResponses/auto``.
    public var interimResponses = InterimResponses.auto

    /// How long a form must have been incomplete before its client gets an interim response with the address of the
    /// upload. Defaults to 1 second, so that small forms need none. 0 sends it before the body is read.
    public var announcementDelay: Duration = .seconds(1)

    /// When a client first gets an interim response with the number of bytes that are stored. Defaults to 5 seconds
    /// after its request began. Two more follow, each after twice the time: some proxies give up on a request with
    /// more than five interim responses.
    public var progressInterval: Duration = .seconds(5)

    /// The origin before the path in the `Location` of an unfinished upload, such as `https://example.org`, for clients
    /// that do not resolve a relative one (RFC 9110 §10.2.2). Defaults to `nil`: only the path is sent, which is right
    /// behind any proxy.
    public var locationOrigin: String?

    /// Which interim responses with status 104 (Upload Resumption Supported) a client gets.
    ///
    /// Proxies that do not know the status take it for the final response, as nginx does with upstreams of HTTP/1.1.
    /// Clients that create an upload with an empty request need no interim response.
    public enum InterimResponses: String, Sendable, Hashable, CaseIterable {
        /// Only to requests with `Upload-Draft-Interop-Version`, whose body takes longer than
        /// ``UnfinishedUploadOptions/announcementDelay``. A connection of HTTP/1.1 is closed after the final response, so
        /// that a proxy that took the interim one for final sees an end.
        case auto
        /// None.
        case never
    }

    /// Makes options with the default values.
    public init() {}
}
