import Foundation
import HTTPTypes
import PostcardForm
import PostcardTestSupport
import Testing

@testable import PostcardClient

@Suite struct LocalizedTextTests {
    private let catalog: StringCatalog

    init() throws {
        catalog = try StringCatalog(of: "PostcardClient")
    }

    private func text(_ key: String, in language: String = "en") -> String? {
        catalog.text(key, in: language)
    }

    @Test func `every text is there in English and Korean, with the same placeholders`() {
        #expect(catalog.sourceLanguage == "en")
        #expect(catalog.keys.flatMap(catalog.mistakes) == [])
    }

    @Test func `every code has a text and advice`() throws {
        let codes = try StringCatalog.codes(in: "Results/UploadError.swift", of: "PostcardClient")
        #expect(codes.count >= 13)
        for code in codes {
            #expect(text("UploadError.\(code)") != nil, "\(code)")
            #expect(text("UploadError.\(code).advice") != nil, "\(code)")
        }
    }

    private func error(
        _ code: UploadError.Code, status: HTTPResponse.Status? = nil, reason: String? = nil,
        delivery: UploadError.Delivery = .neverArrived
    ) -> UploadError {
        let fields: HTTPFields = reason == nil ? [:] : [.contentType: "application/problem+json"]
        let body = Data(reason.map { #"{"title":"\#($0)"}"# }?.utf8 ?? "".utf8)
        var error = UploadError(
            code, "in English", response: status.map { UploadResponse(status: $0, headerFields: fields, body: body) })
        error.delivery = delivery
        return error
    }

    @Test func `every failure of an upload leads to texts of the catalog`() {
        let codes = [400, 401, 403, 404, 408, 413, 415, 429, 500, 502, 503, 507, 511, 521]
        let statuses = [nil] + codes.map(HTTPResponse.Status.init)
        for code in [UploadError.Code.refused, .connectionLost, .timedOut, .form, .tls, .altered] {
            for status in statuses {
                for delivery in [UploadError.Delivery.neverArrived, .refused, .responseLost, .accepted] {
                    let error = error(code, status: status, delivery: delivery)
                    #expect(text(error.localizedMessage.key) != nil, "\(error.localizedMessage)")
                    #expect(text(error.localizedAdvice.key) != nil, "\(error.localizedAdvice)")
                }
            }
        }
    }

    @Test func `a refusal says the status and what the server says`() throws {
        let plain = error(.refused, status: .badRequest).localizedMessage
        #expect(plain.filling(try #require(text(plain.key))) == "The server did not accept the upload (400).")
        #expect(plain.filling(try #require(text(plain.key, in: "ko"))) == "서버가 업로드를 거부했습니다(400).")

        let full = error(.refused, status: .contentTooLarge, reason: "At most 3 %2$@").localizedMessage
        #expect(
            full.filling(try #require(text(full.key))) == "The server did not accept the upload (413): At most 3 %2$@")
    }

    @Test(
        arguments: [
            (.refused, 413, .refused, "UploadError.refused.413.advice"),
            (.refused, 503, .refused, "UploadError.refused.busy.advice"),
            (.refused, 521, .refused, "UploadError.refused.busy.advice"),
            (.refused, 511, .refused, "UploadError.refused.511.advice"),
            (.refused, 400, .refused, "UploadError.refused.advice"),
            (.refused, 500, .responseLost, "UploadError.advice.response-lost"),
            (.connectionLost, nil, .responseLost, "UploadError.advice.response-lost"),
            (.connectionLost, nil, .neverArrived, "UploadError.connection-lost.advice"),
        ] as [(UploadError.Code, Int?, UploadError.Delivery, String)])
    func `whether the upload may have arrived matters most to the advice`(
        code: UploadError.Code, status: Int?, delivery: UploadError.Delivery, key: String
    ) {
        let error = error(code, status: status.map { HTTPResponse.Status(code: $0) }, delivery: delivery)
        #expect(error.localizedAdvice.key == key)
    }

    @Test(
        arguments: [
            ("file:///tmp/photos/cat.jpg", "FormError.file-missing", ["cat.jpg"]),
            ("https://a.example/cat.jpg", "FormError.other", []),
        ])
    func `a file that cannot be sent is named, and mistakes of the developer are not explained to users`(
        url: String, key: String, arguments: [String]
    ) throws {
        var form = MultipartForm()
        form.append(fileAt: try #require(URL(string: url)), named: "petImage")
        let formError = try #require(throws: FormError.self) { try form.layout() }
        let error = UploadError.form(formError)
        #expect(error.localizedMessage == LocalizedText(key: key, arguments: arguments))
        #expect(text(key) != nil)
        #expect(text(error.localizedAdvice.key) != nil)
    }

    @Test(
        arguments: [
            "file-missing", "file-not-regular", "file-unreadable", "file-changed", "metadata-unreadable", "other",
        ])
    func `every error of a form has texts`(code: String) {
        #expect(text("FormError.\(code)") != nil)
        #expect(text("FormError.\(code).advice") != nil)
    }

    @Test(
        arguments: [
            ("%1$@ and %2$@", "a and b"), ("%2$@, %1$@", "b, a"), ("100 %% of %1$@", "100 % of a"), ("%3$@!", "!"),
            ("50%", "50%"), ("%d %1 %1$ %", "%d %1 %1$ %"), ("", ""), ("none", "none"), ("%0$@", ""),
        ])
    func `placeholders are filled, and nothing else is read as one`(format: String, expected: String) {
        #expect(LocalizedText(key: "", arguments: ["a", "b"]).filling(format) == expected)
    }

    @Test func `an argument is not a format`() {
        #expect(LocalizedText(key: "", arguments: ["%2$@ %%", "b"]).filling("%1$@, %2$@") == "%2$@ %%, b")
    }

    #if os(Linux)
    @Test func `without a catalog the English message is the description`() {
        let error = error(.connectionLost)
        #expect(error.errorDescription == "in English")
        #expect(error.recoverySuggestion == error.advice)
    }
    #endif
}
