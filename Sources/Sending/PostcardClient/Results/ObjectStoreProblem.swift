import HTTPTypes
import PostcardFoundation

/// A problem that an object store reports in the format of Amazon S3: XML with a `Code` and a `Message`.
///
/// ```swift
/// if let problem = error.objectStoreProblem { print(problem.code, problem.message) }
/// ```
public struct ObjectStoreProblem: Sendable, Hashable {
    /// The kind of problem, such as `EntityTooLarge`.
    public let code: String

    /// The store's description of the problem; empty if there is none.
    public let message: String

    /// The identifier of the request in the store's logs, for the store's operator; `nil` if it is not known.
    public let requestID: String?

    /// The maximum size of a file, in bytes, if the file was too large and the store reports the maximum.
    public let maximumBytes: Int64?

    /// Reads the body of a response.
    ///
    /// - Returns: `nil` if the body is not an error of an object store.
    init?(_ body: some Collection<UInt8>) {
        let start = body.prefix(256)
        guard start.first(where: { !$0.isXMLBlank }) == UInt8(ascii: "<") else { return nil }
        let elements = XMLElements(body)
        guard let code = elements["Code"], !code.isEmpty else { return nil }
        self.code = code
        message = elements["Message"] ?? ""
        requestID = elements["RequestId"]
        maximumBytes = elements["MaxSizeAllowed"].flatMap { Int64($0) }
    }

    /// Whether the form's signature has expired. A newly signed form may then be accepted.
    public var isExpiration: Bool {
        code == "ExpiredToken" || code == "AccessDenied" && message.lowercased().contains("expired")
    }

    /// Whether the same form may be accepted later.
    var isTransient: Bool { ["RequestTimeout", "OperationAborted", "ConditionalRequestConflict"].contains(code) }
}

extension UInt8 {
    /// Whether the byte is white space, or belongs to the byte order mark.
    fileprivate var isXMLBlank: Bool { self <= 0x20 || [0xEF, 0xBB, 0xBF].contains(self) }
}

extension UploadResponse {
    /// The problem in the body, if the body is an error of an object store.
    public var objectStoreProblem: ObjectStoreProblem? {
        guard !(200..<300).contains(status.code) else { return nil }
        return ObjectStoreProblem(body)
    }
}

// MARK: - Advice

extension ObjectStoreProblem {
    /// What to try, in a sentence or two; `nil` if the code is not known.
    public var advice: String? {
        switch code {
        case "AccessDenied": adviceOnDenial
        case "ExpiredToken", "InvalidToken", "TokenRefreshRequired":
            "The credentials that signed the form have ended. Get a new form, signed with fresh credentials."
        case "InvalidAccessKeyId":
            "The store does not know the key that signed the form. Check which store the server signs for."
        case "SignatureDoesNotMatch":
            "The signature is another one's. Check the server's secret key and region, and send the fields, the header "
                + "fields and the Content-Type exactly as they were signed."
        case "RequestTimeTooSkewed": "The clocks of the server that signed and of the store differ. Set them by NTP."
        case "InvalidPolicyDocument":
            "The policy is not one that the store can read. Have the server sign JSON with an expiration and conditions."
        case "EntityTooLarge":
            "The file is larger than the policy or the store accepts\(maximumBytes.map { ", \($0) bytes" } ?? ""). Send a "
                + "smaller one, or have the server sign a larger content-length-range."
        case "EntityTooSmall":
            "The file is smaller than the policy accepts. Check that it is whole, or have the server sign a smaller "
                + "content-length-range."
        case "IncorrectNumberOfFilesInPostRequest":
            "The form must have one file, in the field file, after all other fields."
        case "MaxPostPreDataLengthExceeded", "MaxPostPreDataLengthExceededError":
            "The fields before the file are too long for the store: 20 KB. Send less besides the file."
        case "MalformedPOSTRequest", "MalformedXML":
            "The store could not read the form. Compare the exact request with what the store expects, by postcard "
                + "explain --against s3."
        case "UserKeyMustBeSpecified", "MissingFields", "MissingRequiredField":
            "The form lacks a field that the store needs, such as key. Send all fields that the server signed."
        case "InvalidArgument", "InvalidRequest":
            "A field has a value that the store cannot use, or another one is missing. The store says which. Send no "
                + "Authorization with a presigned form."
        case "MissingContentLength", "NotImplemented":
            "The store needs the length first, or cannot do this. Give streams a length. On Linux use AsyncHTTPTransport: "
                + "URLSessionTransport sends no Content-Length there for forms of more than 1 MiB."
        case "MethodNotAllowed":
            "The store accepts no POST forms at this address. Check the address, or have the server sign a PUT."
        case "NoSuchBucket":
            "There is no such bucket at this address. Check the name and the region that the server signs for."
        case "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed",
            "AuthorizationQueryParametersError", "IllegalLocationConstraintException":
            "The bucket is in another region or at another address. Have the server sign for that one."
        case "KeyTooLongError", "KeyTooLong": "The key of the object is longer than 1,024 bytes. Choose a shorter one."
        case "MetadataTooLarge": "The x-amz-meta fields have more than 2 KB. Send less in them."
        case "BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch":
            "The bytes are not those whose digest was signed. Send them again. If it stays so, the server has signed the "
                + "checksum of an empty body: switch off the checksums that its SDK adds to presigned requests."
        case "PreconditionFailed": "There is an object with this key already. Get a form with another key."
        case "QuotaExceeded", "InsufficientStorage", "XMinioStorageFull": "The store has no room for the file."
        case "RequestTimeout": "The file arrived too slowly for the store. Try again on a better network."
        case "SlowDown", "ServiceUnavailable", "InternalError", "OperationAborted", "ConditionalRequestConflict",
            "TooManyRequests":
            "The store is busy. Try again later, or set a retry policy."
        default: nil
        }
    }

    private var adviceOnDenial: String {
        let text = message.lowercased()
        if isExpiration { return "The form has expired. Get a new one from the server that signed it." }
        if text.isEmpty {
            // Ceph gives no details for any of these causes.
            return "The store does not say why. The signature may be another one's or have expired, or the key that "
                + "signed the form is not known or may not write to this bucket."
        }
        if text.contains("extra input") || text.contains("missing condition") {
            return "No condition of the policy names a field. Leave the field out, or have the server sign a condition "
                + "for it."
        }
        if text.contains("policy") {
            return "The form breaks a condition of its policy. Send what the policy demands, or have the server sign "
                + "another one."
        }
        return "The key that signed the form may not write to this bucket. Allow it to, for this key of the object."
    }
}

/// The elements of an XML document that contain only text, such as those in the errors of object stores.
///
/// These documents are flat, and some stores write them slightly wrong. On Linux, Foundation's parser is a separate
/// library that needs libxml2, a large dependency for a few texts. So this type only looks for `<Name>text</Name>`, and
/// ignores attributes and everything else. The texts are shown to people, and decide only about advice and about
/// replacing a form by a new one.
struct XMLElements: Sendable {
    private let texts: [String: String]

    /// The maximum number of bytes to read. The rest of a longer document is ignored.
    private static let maximumBytes = 64 << 10

    init(_ bytes: some Collection<UInt8>) {
        let text = String(streamSafe: bytes.prefix(Self.maximumBytes))
        var texts: [String: String] = [:]
        var rest = text[...]
        while let start = rest.firstIndex(of: "<") {
            rest = rest[start...].dropFirst()
            guard let end = rest.firstIndex(of: ">") else { break }
            let name = rest[..<end].prefix { !$0.isWhitespace }
            rest = rest[end...].dropFirst()
            guard !name.hasPrefix("/"), !name.hasPrefix("?"), let next = rest.firstIndex(of: "<"),
                rest[next...].hasPrefix("</\(name)>")
            else { continue }
            // The first of several elements with the same name counts, because it belongs to the error itself.
            if texts[String(name)] == nil { texts[String(name)] = Self.unescaped(rest[..<next]) }
        }
        self.texts = texts
    }

    /// The text of the first element with the name.
    subscript(name: String) -> String? { texts[name] }

    private static func unescaped(_ text: Substring) -> String {
        var result = ""
        var rest = text
        while let start = rest.firstIndex(of: "&") {
            result += rest[..<start]
            rest = rest[start...]
            // The longest entity name is shorter than 8. Without a limit, many ampersands would take quadratic time.
            let name = rest.dropFirst().prefix(8).prefix { $0 != ";" }
            guard name.endIndex < rest.endIndex, rest[name.endIndex] == ";",
                let character = Unicode.Scalar(xmlReference: name)
            else {
                result += "&"
                rest = rest.dropFirst()
                continue
            }
            result.unicodeScalars.append(character)
            rest = rest[name.endIndex...].dropFirst()
        }
        return result + rest
    }
}
