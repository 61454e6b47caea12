import HTTPTypes

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension UploadResponse {
    /// Why the server refuses, in its own words: the detail or title of an RFC 9457 problem or what other JSON
    /// calls a message, a web page's title, else the first lines of the text. `nil` where it says nothing.
    public var reason: String? {
        let type = headerFields[.contentType]?.lowercased() ?? ""
        let found: String? =
            if type.contains("json") {
                reasonInJSON
            } else if type.contains("html") {
                titleOfPage
            } else {
                firstLines
            }
        return (found ?? firstLines).map(Self.printable).flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The status as text, with its usual phrase: transports differ in which phrase they give, or give none.
    var statusText: String {
        let phrase = Self.usualStatuses.first { $0.code == status.code }?.reasonPhrase ?? status.reasonPhrase
        return phrase.isEmpty ? "\(status.code)" : "\(status.code) \(phrase)"
    }

    /// How the body begins, fit to be printed.
    var beginning: String {
        body.isEmpty ? "an empty body" : Self.printable(String(decoding: body.prefix(300), as: UTF8.self))
    }

    private var reasonInJSON: String? {
        guard let answer = try? JSONDecoder().decode(Complaint.self, from: body) else { return nil }
        return answer.detail ?? answer.title ?? answer.message ?? answer.error
    }

    private var titleOfPage: String? {
        guard let begin = text.firstRange(of: "<title>"), let end = text.firstRange(of: "</title>"),
            begin.upperBound <= end.lowerBound
        else { return nil }
        return String(text[begin.upperBound..<end.lowerBound])
    }

    private var firstLines: String? {
        let lines = text.prefix(2_000).split(whereSeparator: \.isNewline).prefix(3)
        return lines.isEmpty ? nil : lines.joined(separator: " ")
    }

    /// The members by which servers say what is wrong. Each is a text or it is passed over.
    private struct Complaint: Decodable {
        let detail: String?
        let title: String?
        let message: String?
        let error: String?

        enum CodingKeys: CodingKey {
            case detail, title, message, error
        }

        init(from decoder: any Decoder) throws {
            let values = try decoder.container(keyedBy: CodingKeys.self)
            detail = try? values.decode(String.self, forKey: .detail)
            title = try? values.decode(String.self, forKey: .title)
            message = try? values.decode(String.self, forKey: .message)
            error = try? values.decode(String.self, forKey: .error)
        }
    }

    /// A server's words end up on terminals and in logs: no control characters, and no more than 300 characters.
    private static func printable(_ text: String) -> String {
        let scalars = text.unicodeScalars.map { scalar in
            scalar.properties.generalCategory == .control || scalar.properties.generalCategory == .format ? " " : scalar
        }
        let line = String(String.UnicodeScalarView(scalars)).split(separator: " ").joined(separator: " ")
        return line.count > 300 ? "\(line.prefix(300))…" : line
    }

    /// The statuses that form uploads meet.
    private static let usualStatuses: [HTTPResponse.Status] = [
        .ok, .created, .accepted, .noContent, .movedPermanently, .found, .seeOther, .temporaryRedirect,
        .permanentRedirect, .badRequest, .unauthorized,
        .forbidden, .notFound, .methodNotAllowed, .requestTimeout, .conflict, .lengthRequired, .contentTooLarge,
        .unsupportedMediaType, .unprocessableContent, .tooManyRequests, .internalServerError, .notImplemented,
        .badGateway, .serviceUnavailable, .gatewayTimeout,
    ]
}
