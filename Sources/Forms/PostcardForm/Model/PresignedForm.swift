public import PostcardFoundation

/// A form that a server has filled in and signed. With it, an app posts a file straight to a bucket of an object store,
/// without credentials of its own.
///
/// ```swift
/// let presigned = try JSONDecoder().decode(PresignedForm.self, from: json)
/// var form = MultipartForm()
/// form.append(fileAt: photo, named: "file")
/// let object = try await client.upload(form, with: presigned)
/// ```
///
/// The form is decoded from the JSON that boto3's `generate_presigned_post`, the JavaScript SDK's `createPresignedPost`
/// and Postcard's own server return: `{"url": …, "fields": {…}}`. Stores without POST forms, such as R2 and B2, use a
/// presigned PUT instead, with the JSON `{"method": "PUT", "url": …, "headers": {…}}`. This JSON is decoded to a
/// `PresignedForm` too, so an app need not know which kind its server returns.
///
/// Treat a presigned form as a password: anyone who has it can use it until it expires.
public struct PresignedForm: Sendable, Hashable {
    /// The address that the file is sent to.
    public let url: URL

    /// The way in which the file is sent.
    public let kind: Kind

    /// The key of the object, if known before the file is sent. The store replaces `${filename}` in it by the filename.
    public let key: String?

    /// The way in which a file is sent to an object store.
    public enum Kind: Sendable, Hashable {
        /// The file is the last part of a form, after these fields.
        case post(fields: [String: String])
        /// The file is the body of a PUT with these header fields.
        case put(headerFields: [String: String])
    }

    /// Makes a form for a POST.
    ///
    /// - Parameters:
    ///   - url: The address of the bucket.
    ///   - fields: The fields that the server signed, among them `policy` and `x-amz-signature`.
    public init(url: URL, fields: [String: String]) {
        self.url = url
        kind = .post(fields: fields)
        key = fields.first { $0.key.lowercased() == "key" }?.value
    }

    /// Makes a presigned PUT.
    ///
    /// - Parameters:
    ///   - url: The address of the object, with its signature.
    ///   - headerFields: The header fields that the server signed, without `Host`. Defaults to none.
    ///   - key: The key of the object. Defaults to `nil`: it is not known.
    public init(putting url: URL, headerFields: [String: String] = [:], key: String? = nil) {
        self.url = url
        kind = .put(headerFields: headerFields)
        self.key = key
    }

    /// When the store stops accepting the form: at the policy's expiration, or at the end of the signature of a PUT.
    /// `nil` if the form has no such date.
    public var expires: Date? {
        switch kind {
        case .post: (try? policy)?.expires
        case .put: PresignedQuery(url).expires
        }
    }
}

extension PresignedForm {
    /// The policy that the server has signed; `nil` for a PUT, and for a form without a policy.
    package var policy: FormPolicy? {
        get throws(FormPolicyError) {
            guard case .post(let fields) = kind,
                let text = fields.first(where: { $0.key.lowercased() == "policy" })?.value
            else { return nil }
            return try FormPolicy(base64: text)
        }
    }
}

extension PresignedForm: CustomStringConvertible {
    /// The method and the host, without secrets.
    public var description: String {
        let method = if case .put = kind { "PUT" } else { "POST" }
        return "a presigned \(method) to \(url.host() ?? "")"
    }
}

extension PresignedForm: Codable {
    private enum CodingKeys: CodingKey {
        case method, url, fields, headers, key, expires
    }

    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        let url = try members.decode(URL.self, forKey: .url)
        let method = try members.decodeIfPresent(String.self, forKey: .method)?.uppercased()
        if let fields = try members.decodeIfPresent([String: String].self, forKey: .fields), method ?? "POST" == "POST"
        {
            self.init(url: url, fields: fields)
            return
        }
        let query = PresignedQuery(url)
        guard method ?? (query.isSigned ? "PUT" : nil) == "PUT" else {
            throw DecodingError.dataCorruptedError(
                forKey: .fields, in: members,
                debugDescription: "The presigned form has no fields, and its URL has no signature of a PUT.")
        }
        self.init(
            putting: url, headerFields: try members.decodeIfPresent([String: String].self, forKey: .headers) ?? [:],
            key: try members.decodeIfPresent(String.self, forKey: .key))
    }

    /// Encodes what boto3's `generate_presigned_post` returns, and the method. The key and the expiration, in ISO 8601,
    /// are added if they are known.
    public func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(url, forKey: .url)
        switch kind {
        case .post(let fields):
            try members.encode("POST", forKey: .method)
            try members.encode(fields, forKey: .fields)
        case .put(let headerFields):
            try members.encode("PUT", forKey: .method)
            try members.encode(headerFields, forKey: .headers)
        }
        try members.encodeIfPresent(key, forKey: .key)
        try members.encodeIfPresent(expires?.formatted(.iso8601), forKey: .expires)
    }
}

/// The signature parameters of a presigned URL (Amazon S3's "Authenticating Requests: Using Query Parameters").
package struct PresignedQuery: Sendable {
    private let items: [String: String]

    package init(_ url: URL) {
        let items = URLComponents(url: url, resolvingAgainstBaseURL: true)?.queryItems ?? []
        self.items = Dictionary(
            items.map { ($0.name.lowercased(), $0.value ?? "") }, uniquingKeysWith: { first, _ in first })
    }

    var isSigned: Bool { items["x-amz-signature"] != nil || items["signature"] != nil }

    /// When the signature expires; `nil` if the query has no expiration.
    var expires: Date? {
        if let lifetime = items["x-amz-expires"].flatMap({ Int32($0) }), let text = items["x-amz-date"] {
            let style = Date.ISO8601FormatStyle(
                dateSeparator: .omitted, dateTimeSeparator: .standard, timeSeparator: .omitted)
            return (try? Date(text, strategy: style))?.addingTimeInterval(Double(lifetime))
        }
        // The older kind of signature has its expiration in seconds since 1970.
        guard items["signature"] != nil else { return nil }
        return items["expires"].flatMap { Int64($0) }.map { Date(timeIntervalSince1970: Double($0)) }
    }

    /// The names of the signed header fields in lower case, without `host`.
    package var signedHeaderFields: [String] {
        (items["x-amz-signedheaders"] ?? "").lowercased().split(separator: ";").map(String.init).filter { $0 != "host" }
    }
}
