import Foundation
import Testing

@testable import PostcardReceiver
@testable import PostcardReception
@testable import PostcardServer

@Suite(.timeLimit(.minutes(10)))
struct SecretsTests {
    @Test(arguments: [
        "Authorization", "X-Authorization", "X-Forwarded-Authorization", "Proxy-Authorization", "X-Auth", "auth_header",
        "X-Forwarded-Access-Token", "X-Amz-Security-Token", "Cookie", "X-Session-Id", "sid", "DPoP", "X-Api-Key",
        "apiKey",
        "APIKey", "x_api_key", "Ocp-Apim-Subscription-Key", "Private-Key", "AWSAccessKeyId", "X-Functions-Key", "key",
        "X-Amz-Signature", "sig", "X-Hub-Signature-256", "X-XSRF-Token", "pass", "user_pass", "userPass", "PASSWORD",
        "password2", "user[password]", "current-passwd", "passphrase", "pwd", "pw", "PIN", "otp", "oauth2", "cvv",
        "code",
        "access_code", "SMS-Code", "client_secret", "비밀번호", "e\u{301}_token",
        // As a server or a person reads them.
        "p%61ssword", "%70%61%73%73", "p%2561ssword", "p%61ss%ZZword%", "p\\u0061ssword", "ｐａｓｓｗｏｒｄ", "Ａｐｉ－Ｋｅｙ",
        "𝐩𝐚𝐬𝐬𝐰𝐨𝐫𝐝", "раѕѕwоrd", "РАSSWORD", "tоkеn", "ѕесrеt", "αpiKey", "ｔｏｋｅｎ", "pass\u{200B}word", "pa\u{AD}sswd",
        "pässwörd",
        "p\u{336}assword", "ᴛᴏᴋᴇɴ", "%ef%bc%b0assword", "비밀\u{200B}번호",
    ])
    func `names of what lets someone in`(name: String) {
        #expect(Secrets.isSecret(name))
    }

    @Test(arguments: [
        "Idempotency-Key", "X-Request-Id", "Sec-WebSocket-Key", "author", "X-Authority", "Host", "Accept", "User-Agent",
        "Content-Type", "Content-Digest", "ETag", "zip_code", "country-code", "public-key", "Cache-Key", "primaryKey",
        "key_id", "keyword", "monkey", "bypass", "passport", "compass", "spin", "design", "signal", "username", "email",
        "message", "picture", "name", "이름", "", "-", "имя", "файл", "όνομα", "写真", "100%", "a%zz", "\\u00", "\\ud800",
        "n%61me",
    ])
    func `names of what everyone may see`(name: String) {
        #expect(!Secrets.isSecret(name))
    }

    @Test(arguments: [
        ("/uploads", "/uploads"), ("/u?token=a&b=c", "/u?token=***&b=c"),
        ("/u?to%6ben=a&sig=b&code=c&author=d", "/u?to%6ben=***&sig=***&code=***&author=d"),
        ("/u?b=c&Access_Token=x=y", "/u?b=c&Access_Token=***"),
        ("/u?token", "/u?token"), ("/u?", "/u?"), ("/u?a=token=b", "/u?a=token=b"),
        ("/u?pass=a;b&c=d", "/u?pass=***&c=d"), ("/u?a=b;pass=c", "/u?a=b;pass=***"),
        ("https://u:p@h/x?pass=1#access_token=2&z=3", "https://***@h/x?pass=***#access_token=***&z=3"),
        ("https://h/?u=https://u:p@i/?token=1&z=2", "https://h/?u=https://***@i/?token=***&z=2"),
        ("https://h/?u=https%3A%2F%2Fi%2F%3Ftoken%3D1&z=2", "https://h/?u=***&z=2"),
        ("https://h/?u=https%3A%2F%2Fu%3Ap%40i%2F", "https://h/?u=***"),
        ("https://h/?u=a%20b", "https://h/?u=a%20b"),
        ("<https://u:p@h/?token=a,b>; rel=\"next\"", "<https://***@h/?token=***>; rel=\"next\""),
        ("//u:p@h/", "//***@h/"), ("/a//b@c", "/a//b@c"), ("a=1; secret=\"b c\"; d=e", "a=1; secret=***; d=e"),
        ("mailto:a@b.example", "mailto:a@b.example"),
        // Whitespace of all kinds separates, and a combining character changes nothing before it.
        ("a=1\ttoken=b\r\nc", "a=1\ttoken=***\r\nc"), ("a\u{3000}pin=b\u{A0}c", "a\u{3000}pin=***\u{A0}c"),
        ("/u?token=\u{301}a&b=c", "/u?token=***&b=c"), ("token=\"\u{301}a b\" c", "token=*** c"),
        ("https://u:p@\u{301}h/", "https://***@\u{301}h/"),
        ("/uploads/0123456789abcdefghjkmnpqrstvwxyz?a=b", "/uploads/***"),
        ("/0123456789abcdefghjkmnpqrstvwxyz/a", "/***/a"),
        ("/u?x=Bearer%20s3cret&y=1", "/u?x=***&y=1"), ("/u?x=basic+s3cret#y=1", "/u?x=***#y=1"),
        ("/u?p%2561ss=1&ｐｉｎ=2", "/u?p%2561ss=***&ｐｉｎ=***"),
    ])
    func `secrets in an address are masked, and nothing else`(path: String, masked: String) {
        #expect(Secrets.masked(path: path) == masked)
    }

    @Test(arguments: [
        ("Bearer abc", true), ("bearer\tabc", true), ("  BASIC Zm9v", true), ("\"Bearer abc\"", true),
        ("Bearer+abc&x=1", true), ("Bearer%20abc", true), ("Negotiate YII=", true),
        ("Digest username=\"a\", nonce=1", true),
        ("DPoP abc", true), ("AWS4-HMAC-SHA256 Credential=a/b", true), ("Token abc", true), ("token t=1", true),
        ("Bearer", false), ("Bearer ", false), ("bearerabc", false), ("Token of my love", false),
        ("Digest of the news", false), ("a Bearer abc", false), ("", false), ("\0", false), ("Basics of it", false),
    ])
    func `a value that begins as credentials do is a secret, whatever its name`(value: String, isSecret: Bool) {
        #expect(Secrets.beginsWithCredentials(value.utf8) == isSecret)
        #expect((Secrets.masked(value, of: "X-Custom") == "***") == isSecret)
    }

    @Test func `of a text that is longer than anyone reads, the rest is masked`() {
        let masked = Secrets.masked(path: "/u?" + String(repeating: "a=b&", count: 5000) + "token=s3cret")
        #expect(masked.hasPrefix("/u?a=b&") && masked.hasSuffix("***") && !masked.contains("s3cret"))
    }

    @Test func `a name that is too long to look at is that of a secret`() {
        #expect(!Secrets.isSecret(String(repeating: "a", count: 256)))
        #expect(Secrets.isSecret(String(repeating: "a\u{301}\u{316}", count: 1_000)))
    }

    private static func part(_ header: String, _ content: String) -> String { "--b\r\n\(header)\r\n\r\n\(content)\r\n" }

    private static func field(_ name: String, _ content: String) -> String {
        part("Content-Disposition: form-data; name=\"\(name)\"", content)
    }

    /// Bodies in which `s3cret` is a secret and `shown` is none.
    private static let bodies = [
        field("password", "s3cret") + field("a", "shown") + "--b--\r\n",
        field("a", "shown") + field("user[api_key]", "s3cret"),
        // Not well formed, as most refused forms are.
        "Content-Disposition: form-data; name=token\r\n\r\ns3cret\r\n--b--\r\n",
        "--b\nContent-Disposition: form-data; name=pin\n\ns3cret\n--b\n\nshown\n--b--",
        "--b\rContent-Disposition: form-data; NAME = pin\r\rs3cret\r--b\r\rshown\r--b--",
        "--b\r\nContent-Disposition: form-data; name=\"pwd\"\r\ns3cret: s3cret\r\n--b\r\n\r\nshown\r\n--b--",
        "--b\r\nContent-Disposition: form-data;\r\n name*=UTF-8''pass%77ord\r\n\r\ns3cret",
        "--b\r\nContent-Disposition: form-data; name=\"secret\r\n\r\ns3cret\r\n--b--",
        "--x\r\n\r\nshown\r\n" + field("token", "s3cret\r\n--b"),
        field("privateKey", "-----BEGIN KEY-----\r\ns3cret\r\n-----END KEY-----\r\n--s3cret") + field("a", "shown"),
        // Secrets in a header, and in a text that is JSON.
        part("X-Token: s3cret\r\nContent-Disposition: form-data; name=\"a\"", "shown"),
        field("settings", "{\"a\": [{\"Api-Key\" : \"s3cret\"}]}") + field("a", "shown"),
        // No forms.
        "user=a&password=s3cret", "{\"pin\": \"s3cret\"}", "<password>s3cret</password>", "token: s3cret",
        "pass%77ord=s3cret", "{\"p\\u0061ssword\": \"s3cret\"}", "{\"a\": \"{\\\"token\\\": \\\"s3cret\\\"}\"}",
        // Values that are secrets by themselves.
        field("a", "Bearer s3cret") + field("b", "shown"), field("a", "basic s3cret\r\ns3cret"),
        part("X-Custom: Bearer s3cret\r\nContent-Disposition: form-data; name=\"a\"", "shown"),
        "x=Bearer+s3cret&y=1", "{\"x\": \"Bearer s3cret\"}", "x: Bearer s3cret", field("раsswоrd", "s3cret"),
        field("p%2561ssword", "s3cret"),
    ]

    @Test(arguments: bodies)
    func `secrets are taken out of the bytes of a body, and all else keeps its place`(body: String) {
        let whole = Array(body.utf8)
        for cut in whole.indices {
            // The two ends that are kept of a body meet somewhere.
            let kept = RecordedBody(
                first: Array(whole[..<cut]), last: Array(whole[cut...]), length: Int64(whole.count), isComplete: true
            ).hidingSecrets { _ in false }
            let text = String(decoding: kept.first + kept.last, as: UTF8.self)
            #expect(!text.contains("s3cret") && kept.hidesSecrets)
            #expect(text.contains("shown") == body.contains("shown"))
            guard !text.isEmpty else { continue }
            #expect(kept.first.count == cut && kept.length == Int64(whole.count))
            #expect(zip(text.utf8, whole).allSatisfy { $0 == $1 || $0 == UInt8(ascii: "*") })
        }
    }

    @Test(arguments: [
        field("a", "shown") + "--b--\r\n", "user=a&author=b", "{\"a\": 1}", "no form", "",
        field("note", "The password: shown."),
    ])
    func `a body without secrets is kept as it is`(body: String) {
        let kept = RecordedBody(first: Array(body.utf8), last: [], length: Int64(body.utf8.count), isComplete: true)
        let shown = kept.hidingSecrets { _ in false }
        #expect(shown.first == kept.first && !shown.hidesSecrets)
    }

    @Test func `the end of a long secret is hidden as well as its beginning`() {
        let (first, last) = (Array(Self.field("token", "s3cret").utf8), Array("s3cret\r\n--b\r\n\r\nshown".utf8))
        let kept = RecordedBody(first: first, last: last, length: 1_000_000, isComplete: true)
        let text = String(decoding: kept.hidingSecrets { _ in true }.last, as: UTF8.self)
        #expect(!text.contains("s3cret") && text.hasSuffix("shown"))
    }

    @Test func `a secret is hidden in what is kept around a problem too`() {
        let filler = Self.field("a", String(repeating: "x", count: 10_000))
        let secret = Self.field("password", String(repeating: "s3cret", count: 1000))
        let body = Array((filler + secret + filler + "--b--\r\n").utf8)
        let whole = RecordedBody(pieces: [.init(offset: 0, bytes: body)], length: Int64(body.count), isComplete: true)
        let place = Int64((filler + secret).utf8.count - 3000)
        let kept = whole.hidingSecrets { _ in false }.cut(toEnds: 1000, around: [place], reach: 96)
        #expect(kept.hidesSecrets)
        #expect(kept.bytes(around: place, reach: 96)?.bytes == Array(repeating: UInt8(ascii: "*"), count: 192))
    }

    @Test func `of a body with more lines than anyone reads, the rest is hidden`() {
        let body = Self.field("a", "shown") + String(repeating: "--b\na: b\n", count: 60_000) + "token: s3cret\n"
        let kept = RecordedBody(first: Array(body.utf8), last: [], length: Int64(body.utf8.count), isComplete: true)
        let text = String(decoding: kept.hidingSecrets { _ in false }.first, as: UTF8.self)
        #expect(text.contains("shown") && !text.contains("s3cret"))
        #expect(text.utf8.count == body.utf8.count)
    }
}
