import Foundation
import PostcardTestSupport
import Testing

@testable import postcard

/// Options that are given twice, and files of options that are none.
@Suite(.timeLimit(.minutes(10)))
struct CommandLineTests {
    private static let url = "http://127.0.0.1:1/"

    private static let repeated: [(arguments: [String], word: String)] = [
        (["serve", "--token", "a", "--token", "b"], "--token is given twice, and has one value. Write several into"),
        (["serve", "--read-token=a", "--read-token=b"], "--read-token-file"),
        (["serve", "--directory", "a", "--directory", "b"], "Write it once."),
        (["serve", "--rules", "a", "--rules", "b"], "--rules is given twice"),
        (["serve", "--max-body", "1MB", "--port", "0", "--max-body=2MB"], "--max-body is given twice"),
        (["serve", "--private-key", "a", "--private-key", "b"], "--private-key is given twice"),
        (["send", url, "-F", "a=b", "--metadata", "none", "--metadata", "as-is"], "--metadata is given twice"),
        (["send", "--url", url, "--url", url, "-F", "a=b"], "--url is given twice"),
        (["send", url, "-F", "a=b", "--retries", "1", "--retry", "2", "--retries", "3"], "--retries is given twice"),
        (["queue", "add", url, "-F", "a=b", "--queue", "a", "--queue", "b"], "--queue is given twice"),
        (["queue", "run", "--limit-rate", "1k", "--limit-rate", "2k"], "--limit-rate is given twice"),
        (["explain", "--against", "php", "--against", "nginx"], "--against is given twice"),
        (["explain", "--fix", "a", "--fix", "b"], "--fix is given twice"),
        (["conformance", url, "--content-type", "a/b", "--content-type", "c/d"], "--content-type is given twice"),
    ]

    @Test(arguments: repeated)
    func `an option with one value is not given twice`(arguments: [String], word: String) async throws {
        let ending = try await Program.run(arguments)
        #expect(ending.status == 64, "\(arguments)")
        #expect(ending.messages.replacing(/\s+/, with: " ").contains(word), "\(ending.messages)")
    }

    private static let ofCurl: [[String]] = [
        ["-X", "PUT", "-XPOST"], ["-u", "a:b", "--user", "c:d"], ["-m", "1", "-m2"], ["-x", "", "-x", ""],
        ["--retry", "1", "--retry", "2"], ["--cacert", "/no/file", "--cacert", "/no/file"], ["-s", "-s"],
        // Values, whatever they look like.
        ["-F", "x=--timeout", "-F", "y=--timeout"], ["-H", "A: --json", "-H", "B: --json"],
    ]

    @Test(arguments: ofCurl)
    func `an option of curl counts as curl counts it, and one that repeats has all its values`(
        arguments: [String]
    ) async throws {
        let ending = try await Program.run(["send", Self.url, "-F", "a=b", "--dry-run"] + arguments)
        #expect(ending.status == 0, "\(ending.messages)")
    }

    private static let devices: [(arguments: [String], status: Int32)] = [
        (["send", url, "-F", "a=</dev/zero"], 66), (["send", url, "-F", "a=</dev/urandom"], 66),
        (["send", url, "-F", "a=b;headers=@/dev/zero"], 66), (["send", url, "-F", "a=@/dev/zero"], 66),
        (["send", url, "-K", "/dev/zero"], 64), (["queue", "add", url, "--config", "/dev/urandom"], 64),
        (["send", url, "-F", "a=b", "--cacert", "/dev/zero"], 66),
        (["send", url, "-F", "a=b", "--cert", "/dev/zero"], 66),
        (["serve", "--port", "0", "--rules", "/dev/zero"], 66),
        (["serve", "--port", "0", "--token-file", "/dev/zero"], 66),
        (["serve", "--port", "0", "--read-token-file", "/dev/urandom"], 66),
        (["serve", "--port", "0", "--webhook", "http://a/", "--webhook-secret-file", "/dev/zero"], 66),
        (["serve", "--port", "0", "--certificate", "/dev/zero", "--private-key", "/dev/zero"], 66),
        (["serve", "--port", "0", "--config", "/dev/zero"], 64),
        (["explain", "/dev/zero"], 66),
        (["explain", "--content-type", "multipart/form-data; boundary=b", "/dev/zero"], 66),
        (["conformance", url, "--body", "/dev/zero", "--content-type", "a/b"], 66),
    ]

    @Test(arguments: devices)
    func `a device without an end is refused wherever a file is read`(arguments: [String], status: Int32) async throws {
        let folder = try TemporaryFolder()
        let place = arguments[0] == "serve" ? ["--directory", folder.path + "/received"] : []
        let ending = try await Program.run(arguments + place)
        #expect(ending.status == status, "\(arguments): \(ending.messages)")
        #expect(ending.messages.replacing(/\s+/, with: " ").contains("a device"), "\(ending.messages)")
    }

    @Test func `a stream without an end is refused at a limit, and names it`() async throws {
        let program = Program.url.path
        for options in ["-F 'a=<-'", "-F 'a=b;headers=@-'", "-K -", "-F 'a=</dev/stdin'"] {
            let ending = try await Program.run("sh", ["-c", "yes a | '\(program)' send \(Self.url) \(options)"])
            #expect([64, 66].contains(ending.status), "\(options)")
            let messages = ending.messages.replacing(/\s+/, with: " ")
            #expect(messages.contains("larger than the 64 MiB"), "\(options): \(messages)")
        }
    }
}
