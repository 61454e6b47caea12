import Foundation
import PostcardTestSupport
import Testing

@testable import PostcardReceiver
@testable import PostcardServer

@Suite(.timeLimit(.minutes(10)))
struct WebPageTests {
    @Test(
        "The page is in the preferred language",
        arguments: [
            (nil, "en"), ("", "en"), ("ko", "ko"), ("ko-KR,ko;q=0.9,en-US;q=0.8", "ko"), ("en;q=0.5, ko;q=0.7", "ko"),
            ("de, fr;q=0.9", "en"), ("de, ko;q=0.1", "ko"), ("ko;q=0, en;q=0.1", "en"), ("KO", "ko"),
            ("en, ko", "en"), ("ko;q=much", "en"), (",;,", "en"),
        ] as [(String?, String)])
    func language(header: String?, expected: String) {
        #expect(PageLanguage(acceptLanguage: header).rawValue == expected)
    }

    @Test("Every text is there in every language, with the same values to be put in")
    func texts() {
        let english = WebPage.texts(in: .english)
        #expect(!english.isEmpty)
        for language in PageLanguage.allCases {
            let texts = WebPage.texts(in: language)
            #expect(Set(texts.keys) == Set(english.keys))
            for (name, text) in texts {
                func values(of text: String) -> [Substring] { text.matches(of: /\{\w+\}/).map(\.output).sorted() }
                #expect(values(of: text) == values(of: english[name] ?? ""), "\(language) \(name)")
            }
        }
    }

    @Test("The page is whole, asks nothing from elsewhere, and has nothing in it that its policy forbids")
    func page() async throws {
        try await withReceiver({ $0.uploads.path = "/a\"b<c" }) { receiver in
            let response = try await receiver.curl("-i", "-H", "Accept-Language: ko", "\(receiver.url)/")
            #expect(response.text.contains("<html lang=\"ko\">"))
            #expect(response.text.contains("action=\"/a&quot;b&lt;c\""))
            #expect(!response.text.contains("{{") && !response.text.contains("a\"b<c"))
            #expect(
                response.text.lowercased().contains("content-security-policy: default-src 'none'; script-src 'self'"))
            #expect(response.text.lowercased().contains("vary: accept-language"))
            #expect(
                !response.text.contains("://") && !response.text.contains(" style=")
                    && !response.text.contains("onclick"))
            let assets = response.text.matches(of: /\/assets\/[a-z.]+/).map { String($0.output) }
            #expect(assets.count > 2)
            for asset in assets {
                let fetched = try await receiver.curl("-f", receiver.url + asset)
                #expect(fetched.status == 0, "\(asset)")
                for module in fetched.text.matches(of: /from ".\/([a-z]+\.js)"/) {
                    let imported = try await receiver.curl("-f", "\(receiver.url)/assets/\(module.1)")
                    #expect(imported.status == 0, "\(module.1)")
                }
            }
            let missing = try await receiver.curl("\(receiver.url)/assets/nothing.js")
            #expect(missing.text.contains("\"not-found\""))
        }
    }

    @Test("Where nothing may be read, there is nothing to be listened to or looked at")
    func withoutReading() async throws {
        try await withReceiver({ $0.uploads.access = .none }) { receiver in
            for path in ["/events", "/requests", "/requests/1"] {
                let response = try await receiver.curl(receiver.url + path)
                #expect(response.text.contains("\"not-found\""), "\(path)")
            }
            #expect(try await receiver.curl("\(receiver.url)/").text.contains("\"canRead\":false"))
        }
    }
}
