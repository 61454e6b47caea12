import HTTPTypes
import Hummingbird
import PostcardForm
import PostcardReception
import PostcardStore
import PostcardWire

/// The response to a request for a file, or for a range of its bytes.
struct FileResponse {
    let file: UploadRecord.File
    let content: any StoredFile
    /// Reserves an open file for the response.
    let hold: ShareAccount.Hold
    let budget: ResponseBudget
    let connection: UploadConnection?

    func response(to request: Request) -> Response {
        if let known = request.headers[.ifNoneMatch], Self.matches(known, etag) {
            return Response(status: .notModified, headers: [.eTag: etag, .cacheControl: "no-cache"])
        }
        switch range(of: request) {
        case .notSatisfiable:
            var response = UploadProblem.rangeNotSatisfiable(size: content.size).response
            response.headers[.contentRange] = "bytes */\(content.size)"
            return response
        case .whole:
            return Response(status: .ok, headers: headers, body: body(of: 0..<content.size))
        case .part(let range):
            var headers = headers
            headers[.contentRange] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(content.size)"
            return Response(status: .partialContent, headers: headers, body: body(of: range))
        }
    }

    private var etag: String { "\"\(file.sha256)\"" }

    private func range(of request: Request) -> ByteRange {
        guard request.method == .get, let range = request.headers[.range] else { return .whole }
        // If the client has a part of a different file, it gets the whole file (RFC 9110 §13.1.5).
        if let known = request.headers[.ifRange], known != etag { return .whole }
        return ByteRange(range, size: content.size)
    }

    /// Whether an `If-None-Match` field contains the ETag (RFC 9110 §13.1.2).
    private static func matches(_ value: String, _ etag: String) -> Bool {
        value.split(separator: ",").contains { candidate in
            let tag = candidate.trimmingPrefix { $0 == " " }
            return tag == "*" || tag == etag || tag == "W/\(etag)"
        }
    }

    private var headers: HTTPFields {
        let presentation = FilePresentation(file)
        var headers = HTTPFields(content: presentation.contentType, cacheControl: "no-cache")
        headers[.contentDisposition] = presentation.contentDisposition
        headers[.contentSecurityPolicy] = "sandbox; default-src 'none'"
        headers[.acceptRanges] = "bytes"
        headers[.eTag] = etag
        headers[.reprDigest] = BodyDigest(hexadecimal: file.sha256)?.fieldValue
        return headers
    }

    private func body(of range: Range<Int64>) -> ResponseBody {
        ResponseBody(contentLength: Int(range.upperBound - range.lowerBound)) {
            [content, hold, budget, connection] writer in
            try await budget.send(content, range, to: &writer, on: connection)
            withExtendedLifetime(hold) {}
            try await writer.finish(nil)
        }
    }
}

/// The bytes of a file that a request asks for (RFC 9110 §14).
enum ByteRange: Equatable {
    case whole
    /// Only the bytes in the range.
    case part(Range<Int64>)
    case notSatisfiable

    /// Parses a `Range` header field.
    ///
    /// Ignores a field that is malformed, has another unit or asks for several ranges, as RFC 9110 §14.2 allows.
    init(_ value: String, size: Int64) {
        let fields = value.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard fields.count == 2, fields[0].lowercased() == "bytes" else {
            self = .whole
            return
        }
        let bounds = fields[1].split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard bounds.count == 2 else {
            self = .whole
            return
        }
        self.init(first: Self.number(bounds[0]), last: Self.number(bounds[1]), size: size)
    }

    /// The first or last number of a range.
    private enum Bound {
        case missing
        case number(Int64)
        case malformed
    }

    private init(first: Bound, last: Bound, size: Int64) {
        switch (first, last) {
        case (.number(let first), .missing):
            self = first < size ? .part(first..<size) : .notSatisfiable
        case (.number(let first), .number(let last)) where first <= last:
            self = first < size ? .part(first..<(min(last, size - 1) + 1)) : .notSatisfiable
        case (.missing, .number(let count)):
            self = count > 0 && size > 0 ? .part(max(0, size - count)..<size) : .notSatisfiable
        case (.missing, .missing), (.malformed, _), (_, .malformed), (.number, .number):
            self = .whole
        }
    }

    private static func number(_ text: Substring) -> Bound {
        let text = text.trimmingPrefix { $0 == " " || $0 == "\t" }
        if text.isEmpty { return .missing }
        guard text.utf8.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }) else { return .malformed }
        // A number that exceeds `Int64` is greater than the size of any file.
        return .number(min(Int64(text) ?? .max, .max - 1))
    }
}

/// How browsers present a file, which anyone may have sent.
struct FilePresentation {
    let contentType: String
    let contentDisposition: String

    init(_ file: UploadRecord.File) {
        let type = Self.safeType(file.contentType)
        contentType = type
        let essence = type.prefix { $0 != ";" && $0 != " " }.lowercased()
        let disposition = Self.shownTypes.contains(essence) ? "inline" : "attachment"
        contentDisposition = disposition + Self.parameters(filename: file.filename)
    }

    /// The media types that browsers show without running code in them. Files of other types are downloaded.
    private static let shownTypes: Set<String> = [
        "image/jpeg", "image/png", "image/gif", "image/webp", "image/avif", "image/heic", "image/heif", "image/bmp",
        "text/plain",
    ]

    /// The client's media type, or `application/octet-stream` if that type is malformed.
    private static func safeType(_ text: String) -> String {
        guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }), let type = try? MediaType(text) else {
            return MediaType.octetStream.value
        }
        return type.value
    }

    /// The client's filename: in ASCII for old clients, and unchanged for all others (RFC 6266 §4.3, RFC 8187 §3.2).
    private static func parameters(filename: String) -> String {
        guard !filename.isEmpty else { return "" }
        // Characters that change the direction of text could make the extension seem different.
        let filename = DisplayText.replacingSteering(in: filename, with: "_")
        var plain = ""
        var encoded = ""
        let digits = Array("0123456789ABCDEF")
        for byte in filename.utf8 {
            if isAttributeCharacter(byte) {
                encoded.append(Character(Unicode.Scalar(byte)))
            } else {
                encoded.append("%")
                encoded.append(digits[Int(byte >> 4)])
                encoded.append(digits[Int(byte & 15)])
            }
        }
        for character in filename {
            let isPlain =
                character.isASCII && !character.isNewline && !"\"\\%".contains(character)
                && character.asciiValue.map { $0 >= 0x20 && $0 != 0x7F } == true
            plain.append(isPlain ? character : "_")
        }
        return "; filename=\"\(plain)\"; filename*=UTF-8''\(encoded)"
    }

    /// Whether a byte is an `attr-char` of RFC 8187 §3.2.1.
    private static func isAttributeCharacter(_ byte: UInt8) -> Bool {
        byte.isLetterOrDigit || "!#$&+-.^_`|~".utf8.contains(byte)
    }
}
