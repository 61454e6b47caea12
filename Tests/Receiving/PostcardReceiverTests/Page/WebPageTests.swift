import Foundation
import PostcardDoctor
import PostcardForm
import PostcardReceivingSupport
import PostcardTestSupport
import Testing

@testable import PostcardReceiver
@testable import PostcardReception
@testable import PostcardServer

@Suite(.timeLimit(.minutes(10)))
struct WebPageTests {
    @Test(
        arguments: [
            (nil, "en"), ("", "en"), ("ko", "ko"), ("ko-KR,ko;q=0.9,en-US;q=0.8", "ko"), ("en;q=0.5, ko;q=0.7", "ko"),
            ("de, fr;q=0.9", "en"), ("de, ko;q=0.1", "ko"), ("ko;q=0, en;q=0.1", "en"), ("KO", "ko"),
            ("en, ko", "en"), ("ko;q=much", "en"), (",;,", "en"),
        ] as [(String?, String)])
    func `the page is in the preferred language`(header: String?, expected: String) {
        #expect(PageLanguage(acceptLanguage: header).rawValue == expected)
    }

    @Test
    func `every text is there in every language, with the same values to be put in`() {
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

    @Test func `every problem has a title and a fix in the language of the page`() throws {
        let problems = try #require(WebPage.problems(in: .korean))
        func isKorean(_ text: String?) -> Bool { text?.contains { ("가"..."힣").contains($0) } == true }
        for code in FormProblem.Code.explained + FormProblem.Code.ofReceivers {
            let problem = problems[code.rawValue]
            #expect(isKorean(problem?.title) && isKorean(problem?.fix), "\(code)")
            #expect(code.topic == .receiver || isKorean(problem?.cause), "\(code)")
        }
        // The receiver's own problems, as its sources write them.
        var count = 0
        for module in ["PostcardReception", "PostcardServer", "PostcardReceiver", "PostcardS3"] {
            let folder = Repository.sources(of: module)
            let names = try FileManager.default.subpathsOfDirectory(atPath: folder.path(percentEncoded: false))
            for name in names where name.hasSuffix(".swift") {
                let text = try String(contentsOf: folder.appending(path: name), encoding: .utf8)
                for line in text.split(separator: "\n") where !line.contains("///") {
                    for match in line.matches(of: /code: "([a-z0-9-]+)"/) {
                        let code = String(match.output.1)
                        let problem = problems[code]
                        #expect(isKorean(problem?.title) && isKorean(problem?.fix), "\(code) in \(name)")
                        count += 1
                    }
                }
            }
        }
        #expect(count > 40)
        #expect(WebPage.problems(in: .english) == nil)
    }

    @Test
    func `the page is whole, asks nothing from elsewhere, and has nothing in it that its policy forbids`() async throws
    {
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

    @Test
    func `where nothing may be read, there is nothing to be listened to or looked at`() async throws {
        try await withReceiver({ $0.uploads.access = .none }) { receiver in
            for path in ["/events", "/requests", "/requests/1"] {
                let response = try await receiver.curl(receiver.url + path)
                #expect(response.text.contains("\"not-found\""), "\(path)")
            }
            #expect(try await receiver.curl("\(receiver.url)/").text.contains("\"canRead\":false"))
        }
    }
}
