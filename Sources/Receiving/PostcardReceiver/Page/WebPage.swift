import HTTPTypes
import Hummingbird
import PostcardFoundation
import PostcardReception
import PostcardServer

/// The page at `/` and its files, which are compiled into the program.
///
/// Without scripts, the page is a plain form. Only scripts show data that clients sent, and only as text.
struct WebPage: Sendable {
    /// The features that the page shows.
    struct Offer: Encodable, Sendable {
        let uploadPath: String
        let canRead: Bool
        let canDelete: Bool
        let showsRequests: Bool
        let hasThumbnails: Bool
    }

    private let offer: Offer
    private let pages: [PageLanguage: ByteBuffer]

    init(_ offer: Offer) {
        self.offer = offer
        pages = Dictionary(uniqueKeysWithValues: PageLanguage.allCases.map { ($0, Self.page(in: $0, offer)) })
    }

    /// The page in the language of the request: `?lang=`, or else `Accept-Language`.
    func response(to request: Request) -> Response {
        let language =
            request.uri.queryParameters["lang"].flatMap { PageLanguage(rawValue: String($0)) }
            ?? PageLanguage(acceptLanguage: request.headers[.acceptLanguage])
        var headers = HTTPFields(content: "text/html; charset=utf-8", cacheControl: "no-cache")
        headers[.contentLanguage] = language.rawValue
        headers[.vary] = "Accept-Language"
        headers[.contentSecurityPolicy] = Self.policy
        if let referrerPolicy = HTTPField.Name("Referrer-Policy") { headers[referrerPolicy] = "same-origin" }
        return Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: pages[language] ?? ByteBuffer()))
    }

    static func asset(_ name: String?) throws(UploadProblem) -> Response {
        guard let name, let asset = assets[name] else { throw .pathNotFound }
        return Response(
            status: .ok, headers: HTTPFields(content: asset.type, cacheControl: "no-cache"),
            body: ResponseBody(byteBuffer: asset.bytes))
    }

    /// The Content-Security-Policy. It allows no inline code and nothing from other origins. It allows `blob:` for
    /// pictures that the user chooses.
    private static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
        + "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

    private static let script = "text/javascript; charset=utf-8"

    /// The files of the page, as buffers that all responses share.
    private static let assets: [String: (type: String, bytes: ByteBuffer)] = [
        "page.css": ("text/css; charset=utf-8", PackageResources.page_css),
        "icon.svg": ("image/svg+xml", PackageResources.icon_svg),
        "page.js": (script, PackageResources.page_js),
        "compose.js": (script, PackageResources.compose_js),
        "received.js": (script, PackageResources.received_js),
        "requests.js": (script, PackageResources.requests_js),
        "server.js": (script, PackageResources.server_js),
        "elements.js": (script, PackageResources.elements_js),
        "bytes.js": (script, PackageResources.bytes_js),
        "explained.js": (script, PackageResources.explained_js),
    ].mapValues { (type: $0.0, bytes: ByteBuffer(bytes: $0.1)) }

    static func texts(in language: PageLanguage) -> [String: String] {
        let json =
            switch language {
            case .english: PackageResources.texts_en_json
            case .korean: PackageResources.texts_ko_json
            }
        return (try? JSONDecoder().decode([String: String].self, from: Data(json))) ?? [:]
    }

    /// A problem in the page's language. The receiver's own messages, in English, have more detail.
    struct TranslatedProblem: Codable {
        let title: String
        /// How to correct the form.
        let fix: String
        /// The reason why servers refuse or misread the form; `nil` if the title is clear enough.
        let cause: String?
    }

    /// The problems that the page can show, by their codes; `nil` in English.
    static func problems(in language: PageLanguage) -> [String: TranslatedProblem]? {
        guard language == .korean else { return nil }
        return try? JSONDecoder().decode(
            [String: TranslatedProblem].self, from: Data(PackageResources.problems_ko_json))
    }

    private static func page(in language: PageLanguage, _ offer: Offer) -> ByteBuffer {
        let texts = texts(in: language)
        var values = texts.mapValues(escaped)
        values["language"] = language.rawValue
        values["uploadPath"] = escaped(offer.uploadPath)
        values["data"] = data(PageData(texts: texts, offer: offer, problems: problems(in: language)))
        var page = ByteBuffer()
        // Each placeholder {{name}} is replaced by its value.
        var rest = String(decoding: PackageResources.page_html, as: UTF8.self)[...]
        while let start = rest.firstRange(of: "{{"), let end = rest[start.upperBound...].firstRange(of: "}}") {
            page.writeSubstring(rest[..<start.lowerBound])
            page.writeString(values[String(rest[start.upperBound..<end.lowerBound])] ?? "")
            rest = rest[end.upperBound...]
        }
        page.writeSubstring(rest)
        return page
    }

    /// The data that the page passes to its scripts.
    private struct PageData: Encodable {
        let texts: [String: String]
        let offer: Offer
        let problems: [String: TranslatedProblem]?
    }

    /// The data as JSON, without characters that have a meaning in HTML.
    private static func data(_ data: PageData) -> String {
        let json = (try? JSONEncoder.forResponses.encode(data)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
        return json.replacingASCII(["<": "\\u003c", "&": "\\u0026"])
    }

    private static func escaped(_ text: String) -> String {
        text.replacingASCII(["&": "&amp;", "\"": "&quot;", "<": "&lt;"])
    }
}

enum PageLanguage: String, CaseIterable {
    case english = "en"
    case korean = "ko"

    /// Chooses the language that the client prefers (RFC 9110 §12.5.4), or English.
    init(acceptLanguage: String?) {
        let ranges = (acceptLanguage ?? "").split(separator: ",").compactMap(Self.range)
        // Among languages of equal weight, the first is chosen.
        let best = ranges.filter { $0.weight > 0 }.reduce(nil as (language: PageLanguage, weight: Double)?) {
            best, range in
            (best?.weight ?? 0) < range.weight ? range : best
        }
        self = best?.language ?? .english
    }

    private static func range(_ text: Substring) -> (language: PageLanguage, weight: Double)? {
        let pieces = text.split(separator: ";").map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }
        guard let tag = pieces.first?.split(separator: "-").first, let language = PageLanguage(rawValue: String(tag))
        else {
            return nil
        }
        let weight = pieces.dropFirst().first { $0.hasPrefix("q=") }.map { Double($0.dropFirst(2)) ?? 0 }
        return (language, weight ?? 1)
    }
}
