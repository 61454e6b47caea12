import ArgumentParser
import Foundation
import PostcardDoctor
import PostcardTestSupport
import Testing

@testable import postcard

@Suite(.timeLimit(.minutes(10)))
struct EditableFormTests {
    /// Bytes of which those that have a meaning somewhere are frequent, without those that end a line.
    private static func bytes(_ count: Int, _ random: inout SeededGenerator) -> [UInt8] {
        let special = Array("\"\\\t '%#?&[]{}<>|^`:;,=@/\0\u{1B}é한\u{202E}".utf8) + [0xFF, 0x80, 0x7F]
        return (0..<count).map { _ in
            let byte =
                Bool.random(using: &random)
                ? special.randomElement(using: &random) ?? 0x22 : UInt8.random(in: .min ... .max, using: &random)
            return byte == 0x0A || byte == 0x0D ? 0x20 : byte
        }
    }

    /// A request with random bytes in some places.
    private static func request(_ random: inout SeededGenerator) -> [UInt8] {
        func some(_ usual: String) -> [UInt8] {
            Int.random(in: 0..<3, using: &random) == 0
                ? Array(usual.utf8) : Array(usual.utf8) + bytes(.random(in: 0..<12, using: &random), &random)
        }
        func quoted(_ text: [UInt8]) -> [UInt8] { text.filter { $0 != 0x22 && $0 != 0x3D && $0 != 0 && $0 != 0x5C } }
        var request = some(["POST", "PUT", "GET", "get me"].randomElement(using: &random) ?? "POST").filter {
            $0 != 0x20
        }
        request +=
            Array(" ".utf8)
            + some(["/x", "http://a", "https://[::1]:99999/", "*"].randomElement(using: &random) ?? "/")
        request +=
            Array(" HTTP/1.1\r\nHost: ".utf8)
            + some(["a", "a:80", "[::1]:8080", "a:b"].randomElement(using: &random) ?? "a")
        request += Array("\r\nContent-Type: multipart/form-data; boundary=b\r\n\r\n".utf8)
        for _ in 0..<2 {
            request += Array("--b\r\nContent-Disposition: form-data; name=\"".utf8) + quoted(some("n"))
            request +=
                Array("\"".utf8)
                + (Bool.random(using: &random) ? [] : Array("; filename=\"".utf8) + quoted(some("f")) + [0x22])
            request += Array("\r\nContent-Type: ".utf8) + some("text/plain") + Array("\r\nX-A: ".utf8) + some("v")
            request += Array("\r\n\r\n".utf8) + some("value") + Array("\r\n".utf8)
        }
        return request + Array("--b--\r\n".utf8)
    }

    @Test func `what is written can always be read back, whatever the request has`() throws {
        let folder = try TemporaryFolder()
        var written = 0
        for seed in UInt64(0)..<2_000 {
            var random = SeededGenerator(seed: seed)
            let bytes = Self.request(&random)
            let explanation = Explanation(request: bytes)
            let place = folder.path + "/\(seed)"
            do {
                try EditableForm(folder: place).write(explanation, from: RequestInput(format: .request)) { read in
                    try read(bytes.span.bytes)
                }
            } catch is CommandFailure {
                // A name has a character that no option can write, or there is no part.
                continue
            }
            written += 1
            let arguments = try CommandLineArguments.readable(
                ["send", "--dry-run", "-K", "\(place)/\(EditableForm.name)"].map { Array($0.utf8) })
            let send = try #require(try Postcard.parseAsRoot(arguments) as? Send, "seed \(seed)")
            _ = try #require(URL(string: send.target.text)?.host(), "seed \(seed): \(send.target.text)")
            let parts = try send.options.arguments().flatMap(\.parts)
            #expect(parts.count == explanation.parts.count, "seed \(seed)")
        }
        #expect(written > 300, "\(written)")
    }
}
