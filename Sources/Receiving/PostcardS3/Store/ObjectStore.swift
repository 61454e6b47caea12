import Logging
import NIOCore
import NIOHTTP1
import PostcardFoundation
import Synchronization

/// The objects below the prefix of a bucket.
///
/// Failed requests throw ``S3Error``. If the error is transient, the store may have carried out the request, or may
/// still do so until the signature of the request expires.
struct ObjectStore: Sendable {
    private let connection: S3Connection
    let readingAhead = ReadingAhead()

    init(_ bucket: S3Bucket, logger: Logger) throws {
        connection = try S3Connection(bucket, logger: logger)
    }

    var bucket: S3Bucket { connection.bucket }
    var surroundings: Surroundings { connection.bucket.surroundings }
    var endpoint: String { connection.endpoint }
    private var prefix: String { bucket.prefix }

    /// The address of an object, for messages. The name of an unfinished upload is left out, because it is secret.
    func address(of key: String) -> String { bucket.address(of: prefix + key) }

    // MARK: - Writing

    /// Creates an object unless the key is in use. `signed` is the time of the signature, which is then valid for 15
    /// minutes. It defaults to the time of each try.
    func create(
        _ key: String, _ body: ByteBuffer, metadata: [String: String] = [:], signed: Date? = nil
    ) async throws -> Creation {
        do {
            var request = putting(key, body, metadata)
            request.headers.append(("if-none-match", "*"))
            request.signed = signed
            _ = try await connection.response(to: request)
            return .created
        } catch let error as S3Error where error.status == 412 {
            return .exists
        }
    }

    /// Writes an object, and replaces an existing object. `limit` is the maximum time for the request. It defaults to
    /// the bucket's timeouts.
    func put(
        _ key: String, _ body: ByteBuffer, metadata: [String: String] = [:], payloadHash: String? = nil,
        within limit: Duration? = nil
    ) async throws {
        var request = putting(key, body, metadata)
        request.payloadHash = payloadHash
        request.limit = limit
        _ = try await connection.response(to: request)
    }

    private func putting(_ key: String, _ body: ByteBuffer, _ metadata: [String: String]) -> S3Request {
        let fields = metadata.sorted { $0.key < $1.key }.map { (name: "x-amz-meta-\($0.key)", value: $0.value) }
        return S3Request(method: .PUT, key: prefix + key, headers: fields, body: body)
    }

    /// Copies an object within the store. The copy has `metadata` in place of that of the source. If the source no
    /// longer has the ETag, the store responds with 412.
    func copy(_ source: String, to key: String, ifMatching etag: String?, metadata: [String: String]) async throws {
        var request = putting(key, ByteBuffer(), metadata)
        let path = SignableRequest.encode("\(bucket.name)/\(prefix)\(source)", keeping: UInt8(ascii: "/"))
        request.headers.append(("x-amz-copy-source", path))
        request.headers.append(("x-amz-metadata-directive", "REPLACE"))
        if let etag { request.headers.append(("x-amz-copy-source-if-match", etag)) }
        request.mayHideError = true
        _ = try await connection.response(to: request)
    }

    /// Removes an object. A missing object is no error.
    func delete(_ key: String) async throws {
        do {
            _ = try await connection.response(to: S3Request(method: .DELETE, key: prefix + key))
        } catch let error as S3Error where error.status == 404 && error.storeCode != "NoSuchBucket" {
        }
    }

    /// Removes objects, several at once. Stops after the first error.
    func delete(_ keys: [String]) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, key) in keys.enumerated() {
                if index >= 8 { try await group.next() }
                group.addTask { try await delete(key) }
            }
            try await group.waitForAll()
        }
    }

    /// Removes all objects whose keys begin with a prefix.
    func deleteAll(_ prefix: String) async throws {
        try await listAll(prefix) { page in try await delete(page.objects.map(\.key)) }
    }

    // MARK: - Reading

    func head(_ key: String) async throws -> ObjectHead? {
        try await found {
            let response = try await connection.response(to: S3Request(method: .HEAD, key: prefix + key))
            // An unknown size must not count as 0, because an empty object marks a deleted record or an unused key.
            guard response.headers.first(name: "content-length").flatMap({ Int64($0) }) != nil else {
                throw S3Error.unexpected(
                    "The response to a HEAD of \(address(of: key)) does not say the object's size.",
                    status: response.status)
            }
            return Self.head(response)
        }
    }

    /// Reads an object, or a range of its bytes; `nil` if it does not exist. If `etag` is not the ETag of the object,
    /// the store refuses the request with 412.
    func get(
        _ key: String, range: Range<Int64>? = nil, ifMatching etag: String? = nil
    ) async throws -> (head: ObjectHead, body: ByteBuffer)? {
        try await found {
            var request = S3Request(method: .GET, key: prefix + key)
            if let etag { request.headers.append(("if-match", etag)) }
            if let range { request.headers.append(("range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)")) }
            let response = try await connection.response(to: request)
            // An empty object has no ranges.
            let isWhole = response.status != 206 && response.body.readableBytes > 0
            if let range, isWhole || response.body.readableBytes > range.count {
                throw S3Error.unexpected("The store does not support requests for a range.", status: response.status)
            }
            return (Self.head(response), response.body)
        }
    }

    private func found<Value>(_ body: () async throws -> Value) async throws -> Value? {
        do {
            return try await body()
        } catch let error as S3Error where error.status == 404 && error.storeCode == "NoSuchKey" {
            return nil
        }
    }

    private static func head(_ response: S3Response) -> ObjectHead {
        var metadata: [String: String] = [:]
        for (name, value) in response.headers {
            let name = name.lowercased()
            if name.hasPrefix("x-amz-meta-") { metadata[String(name.dropFirst("x-amz-meta-".count))] = value }
        }
        let range = response.headers.first(name: "content-range")?.split(separator: "/").last
        let size = (range ?? response.headers.first(name: "content-length")?[...]).flatMap { Int64($0) }
        return ObjectHead(
            size: size ?? Int64(response.body.readableBytes), etag: response.headers.first(name: "etag"),
            contentType: response.headers.first(name: "content-type"), metadata: metadata)
    }

    /// Lists objects whose keys begin with `prefix`, in the order of their keys. The listing begins after the key
    /// `last`, which need not exist. `limit` is the maximum number of objects, at most 1000. `time` is the maximum time
    /// for the request. It defaults to the bucket's timeouts.
    func list(
        _ prefix: String, after last: String? = nil, limit: Int = 1000, within time: Duration? = nil
    ) async throws -> ObjectPage {
        var request = S3Request(method: .GET)
        request.limit = time
        request.query = [("list-type", "2"), ("max-keys", "\(limit)"), ("prefix", self.prefix + prefix)]
        if let last { request.query.append(("start-after", self.prefix + last)) }
        let response = try await connection.response(to: request)
        guard let root = XMLNode.root(of: response.body.readableBytesView), root.name == "ListBucketResult",
            let time = response.headers.first(name: "date").flatMap(StoreTime.date(ofField:))
        else {
            throw S3Error.unexpected("The response of \(endpoint) is not a listing.", status: response.status)
        }
        let objects = try root.children.filter { $0.name == "Contents" }.map { node in
            guard let key = node.text(of: "Key"), key.hasPrefix(self.prefix),
                let size = node.text(of: "Size").flatMap({ Int64($0) }), ListedObject.sizes.contains(size),
                let modified = node.text(of: "LastModified").flatMap({ StoreTime.date(of: $0) })
            else { throw S3Error.unexpected("An entry of a listing of \(endpoint) is not complete.") }
            return ListedObject(key: String(key.dropFirst(self.prefix.count)), size: size, modified: modified)
        }
        let isTruncated = root.text(of: "IsTruncated") == "true"
        // The error is thrown because callers treat objects that are not listed as removed.
        if isTruncated, objects.isEmpty {
            throw S3Error.unexpected("A listing of \(endpoint) has no entries, and says that there are more.")
        }
        // Such a listing would make a loop over all pages endless.
        if isTruncated, let last, let end = objects.last?.key, end <= last {
            throw S3Error.unexpected(
                "A listing behind \(address(of: last)) has nothing behind it, and says that there are more.")
        }
        return ObjectPage(objects: objects, isTruncated: isTruncated, time: time)
    }

    /// Lists all objects with a prefix, page by page. Returns the time at which the listing began, by the clock of the
    /// store.
    @discardableResult
    func listAll(_ prefix: String, _ body: (ObjectPage) async throws -> Void) async throws -> Date {
        var last: String?
        var start: Date?
        while true {
            let page = try await list(prefix, after: last)
            start = start ?? page.time
            try await body(page)
            guard page.isTruncated, let next = page.objects.last?.key else { return start ?? page.time }
            last = next
        }
    }

    // MARK: - Parts

    func beginParts(_ key: String, metadata: [String: String] = [:]) async throws -> String {
        var request = putting(key, ByteBuffer(), metadata)
        request.method = .POST
        request.query = [("uploads", "")]
        let response = try await connection.response(to: request)
        guard let id = XMLNode.root(of: response.body.readableBytesView)?.text(of: "UploadId") else {
            throw S3Error.unexpected("The response to the beginning of a multipart upload has no identifier.")
        }
        return id
    }

    /// Writes a part of a multipart upload. Returns the ETag of the part.
    func putPart(_ number: Int, of key: String, _ upload: String, _ body: ByteBuffer) async throws -> String {
        let response = try await connection.response(
            to: S3Request(
                method: .PUT, key: prefix + key, query: [("partNumber", "\(number)"), ("uploadId", upload)], body: body)
        )
        guard let tag = response.headers.first(name: "etag") else {
            throw S3Error.unexpected("The response to a part has no ETag.")
        }
        return tag
    }

    /// Completes a multipart upload.
    ///
    /// If the response is lost, a retry fails because the store no longer knows the upload. The object's size then
    /// shows whether it is complete, because no other upload writes to its key.
    func completeParts(of key: String, _ upload: String, _ tags: [String], size: Int64) async throws {
        var body = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
        for (index, tag) in tags.enumerated() {
            let escaped = tag.replacingASCII(["&": "&amp;", "<": "&lt;"])
            body += "<Part><PartNumber>\(index + 1)</PartNumber><ETag>\(escaped)</ETag></Part>"
        }
        body += "</CompleteMultipartUpload>"
        do {
            _ = try await connection.response(
                to: S3Request(
                    method: .POST, key: prefix + key, query: [("uploadId", upload)], body: ByteBuffer(string: body)))
        } catch let error as S3Error where error.storeCode == "NoSuchUpload" || error.isTransient {
            guard try await head(key)?.size == size else { throw error }
        }
    }

    /// Aborts a multipart upload, which removes its parts.
    func abortParts(of key: String, _ upload: String) async throws {
        do {
            _ = try await connection.response(
                to: S3Request(method: .DELETE, key: prefix + key, query: [("uploadId", upload)]))
        } catch let error as S3Error where error.storeCode == "NoSuchUpload" {
        }
    }

    /// A multipart upload that is in progress or abandoned.
    struct OpenParts: Sendable {
        let key: String
        let upload: String
        let begun: Date
    }

    /// The first thousand incomplete multipart uploads of a prefix.
    func openParts(_ prefix: String) async throws -> (parts: [OpenParts], time: Date) {
        let response = try await connection.response(
            to: S3Request(method: .GET, query: [("prefix", self.prefix + prefix), ("uploads", "")]))
        guard let root = XMLNode.root(of: response.body.readableBytesView),
            let time = response.headers.first(name: "date").flatMap(StoreTime.date(ofField:))
        else { throw S3Error.unexpected("The response of \(endpoint) is not a listing.") }
        let parts = root.children.compactMap { node -> OpenParts? in
            guard node.name == "Upload", let key = node.text(of: "Key"), key.hasPrefix(self.prefix),
                let id = node.text(of: "UploadId"),
                let begun = node.text(of: "Initiated").flatMap({ StoreTime.date(of: $0) })
            else { return nil }
            return OpenParts(key: String(key.dropFirst(self.prefix.count)), upload: id, begun: begun)
        }
        return (parts, time)
    }

    /// Signs a form for clients. The form expires not later than the credentials. The URL of the store for clients may
    /// differ from the URL for this process.
    func signedForm(_ policy: PostPolicy, at date: Date) async throws -> PresignedForm {
        try await connection.signedForm(policy, at: date)
    }

    /// Signs a PUT for clients. Returns a form that expires not later than the credentials.
    func signedPut(
        _ key: String, headers: [(String, String)], lifetime: Int, at date: Date
    ) async throws -> PresignedForm {
        try await connection.signedPut(prefix + key, headers: headers, lifetime: lifetime, at: date)
    }

    /// Whether the store refuses a request whose signature has a given time.
    func isRefusedIfSigned(at date: Date) async throws -> Bool {
        do {
            var request = S3Request(method: .GET)
            request.query = [("list-type", "2"), ("max-keys", "1"), ("prefix", prefix)]
            request.signed = date
            _ = try await connection.response(to: request)
            return false
        } catch let error as S3Error where error.status == 403 {
            return true
        }
    }
}

/// The facts about an object in the head of a response.
struct ObjectHead: Sendable {
    let size: Int64
    /// The ETag, with its quotes, which identifies the content.
    let etag: String?
    let contentType: String?
    /// The metadata fields of the object, without `x-amz-meta-`, in lower case.
    let metadata: [String: String]
}

extension String {
    /// An ETag without its quotes, as events and many clients write it.
    var unquoted: String { filter { $0 != "\"" } }
}

struct ListedObject: Sendable, Hashable {
    /// The key below the bucket's prefix.
    let key: String
    let size: Int64
    /// The time at which the object was written, by the store's clock.
    let modified: Date

    /// The valid sizes and offsets, in bytes. Stores accept no larger objects, and sums cannot overflow.
    static let sizes: ClosedRange<Int64> = 0...(1 << 50)
}

struct ObjectPage: Sendable {
    var objects: [ListedObject]
    /// Whether the listing has more objects after this page.
    var isTruncated: Bool
    /// The time of the listing, by the store's clock.
    var time: Date
}

/// The outcome of a request to create an object.
enum Creation: Sendable {
    case created
    /// The object already exists. An earlier try of the same request may have created the object.
    case exists
}
