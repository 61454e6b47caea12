import ArgumentParser
import Foundation
import PostcardTestSupport
import Testing

@testable import postcard

/// Command lines of curl in which only the program's name was replaced.
@Suite(.timeLimit(.minutes(10)))
struct CurlCommandLineTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
        for name in ["x", "RE,ReX.xlsx", "a;b,c.txt", "q\".txt,y"] { _ = try folder.file(name, "content".utf8) }
    }

    private func run(_ arguments: String) async throws -> Program.Ending {
        try await Program.run("sh", ["-c", "cd '\(folder.path)' && '\(Program.url.path)' send \(arguments)"])
    }

    /// Files that do not exist, and what to write instead.
    private static let missing: [(arguments: String, words: [String])] = [
        ("-F 'sid=<tpl>x</tpl>'", ["No such file tpl>x</tpl>", "--form-string 'sid=<tpl>x</tpl>'"]),
        ("-F user=@alice", ["No such file alice", "--form-string user=@alice"]),
        ("-F sample=@RE,ReX.xlsx", [#"write -F 'sample=@"RE,ReX.xlsx"'"#]),
        ("-F 'f=@a;b,c.txt;type=text/plain'", [#"write -F 'f=@"a;b,c.txt";type=text/plain'"#]),
        (#"-F 'f=<q".txt,y,z'"#, ["--form-string"]), (#"-F 'f=@q".txt,y'"#, [#"-F 'f=@"q\".txt,y"'"#]),
        ("-F 'f=@x;typ=a/b'", ["no attribute 'typ'", ";type="]), ("-F 'f=@x; name=y'", ["no attribute 'name'"]),
        ("-F 'f=@~/x.jpg'", ["$HOME/"]), ("-F 'f=@*.jpg'", ["one -F for each file"]),
    ]

    @Test(arguments: missing.indices)
    func `a file that does not exist leads to what was meant`(index: Int) async throws {
        let (arguments, words) = Self.missing[index]
        let ending = try await run("http://127.0.0.1:1/ \(arguments)")
        #expect(ending.status == 66, "\(arguments)")
        #expect(words.allSatisfy { ending.messages.contains($0) }, "\(ending.messages)")
        // What is advised can be sent.
        guard let advice = ending.messages.firstRange(of: "write -F ")?.lowerBound, !words[0].contains("no attribute"),
            !ending.messages.contains("$HOME")
        else { return }
        let advised = ending.messages[advice...].dropFirst("write ".count).trimmingCharacters(in: ["\n", "."])
        #expect(try await run("http://127.0.0.1:1/ --dry-run \(advised)").status == 0, "\(advised)")
    }

    @Test func `the name of a file in place of the file is pointed out`() async throws {
        try Data("text".utf8).write(to: folder.url.appending(path: "plain.jpg"))
        for (argument, isNamed) in [
            ("-F f=plain.jpg", true), ("-F f=other.jpg", false), ("--form-string f=plain.jpg", false),
        ] {
            let ending = try await run("http://127.0.0.1:1/ --dry-run \(argument)")
            #expect(ending.status == 0)
            #expect(ending.messages.contains("write @ before it") == isNamed, "\(argument): \(ending.messages)")
        }
    }

    @Test func `pipes are sent as streams, and named as their paths`() async throws {
        try Tool.require("bash")
        let program = "'\(Program.url.path)' send http://a.example/ --dry-run"
        let lines = [
            ("\(program) -F f=@<(echo hi)", "filename=\""),
            ("mkfifo p; (echo hi > p &); \(program) -F f=@p", "filename=\"p\""),
            ("echo hi | \(program) -F f=@/dev/stdin", "filename=\"stdin\""),
            ("echo aGkK | base64 -d | \(program) -F 'f=@/dev/stdin;encoder=base64'", "aGkK"),
            ("mkfifo r; (echo hi > r &); \(program) -F 'f=<r'", "name=\"f\"\r\n\r\nhi"),
            ("\(program) -F f=@/proc/version", "Linux"),
        ]
        for (line, word) in lines {
            let ending = try await Program.run(
                "bash", ["-c", "cd '\(folder.path)' && \(line) | tee out; exit ${PIPESTATUS[0]}"])
            #expect(ending.status == 0, "\(line): \(ending.messages)")
            #expect(ending.text.contains(word), "\(line): \(ending.text)")
            let explained = try await Program.run(["explain", folder.path + "/out"])
            #expect(explained.status == 0, "\(line): \(explained.text)")
        }
        for line in ["send http://127.0.0.1:1/ -F f=@/dev/zero", "send http://127.0.0.1:1/ -F f=@- < /dev/zero"] {
            let ending = try await Program.run("sh", ["-c", "'\(Program.url.path)' \(line)"])
            #expect(ending.status == 66 && ending.messages.contains("device without an end"), "\(ending.messages)")
        }
    }

    @Test func `no option of postcard is taken for one that only curl has`() throws {
        for (command, isQueued) in [(Send.self as any ParsableCommand.Type, false), (QueueAdd.self, true)] {
            let names = try DeclaredArgument.all(of: command).flatMap { ($0.names ?? []).map(\.written) }
            #expect(names.contains("--form"))
            for name in names where name != "-h" {
                #expect(CurlOptions.meaning(of: name, isQueued: isQueued) == nil, "\(name)")
            }
        }
    }

    @Test func `every option of curl is known, ignored or refused with what to write`() async throws {
        let help = try await Program.run("curl", ["--help", "all"]).text
        let names = help.matches(of: /(?m)^ *(?:(-.), )? *(--[a-z0-9.-]+)/).flatMap { match in
            [match.output.1.map(String.init), String(match.output.2)].compactMap(\.self)
        }.filter { !["-h", "--help", "-V", "--version", "-K", "--config"].contains($0) }
        #expect(names.count > 200)
        for command in [["send"], ["queue", "add"]] {
            for name in names {
                let arguments = (command + ["http://a.example/", "-F", "a=b", name, "1"]).map { Array($0.utf8) }
                do {
                    let readable = try CommandLineArguments.readable(arguments)
                    _ = try Postcard.parseAsRoot(readable)
                } catch {
                    let message = Postcard.message(for: error)
                    // A flag leaves the value over, and an option may not accept this one.
                    #expect(!message.contains("Unknown option"), "\(name): \(message)")
                    #expect(!message.contains("Did you mean"), "\(name): \(message)")
                }
            }
        }
    }

    @Test(arguments: [
        ("--digest", "only Basic is supported"), ("--anyauth", "only Basic"), ("--ntlm", "only Basic"),
        ("--oauth2-bearer x", "Authorization: Bearer"), ("-D headers", "--json"), ("--http1.0", "--http1.1"),
        ("-4", "--resolve"), ("--location-trusted", "own origin"), ("--retry-max-time 9", "-m SECONDS"),
        ("--form-escape", "leave it out"), ("-n", "-u name:password"), ("--json {}", "write each field as -F"),
        ("-sSvF c=d", "--dry-run"), ("--tls-max 1.2", "--tlsv1.2"),
    ])
    func `an option that would change something is refused with what to write`(option: String, word: String)
        async throws
    {
        let ending = try await run("http://127.0.0.1:1/ -u me:secret \(option) -F a=1")
        #expect(ending.status == 64)
        #expect(ending.messages.contains("is not an option of postcard: "), "\(ending.messages)")
        #expect(ending.messages.replacing(/\s+/, with: " ").contains(word), "\(ending.messages)")
    }

    @Test(arguments: [
        "--compressed --fail-with-body -# --retry-delay 2 --retry-all-errors --tlsv1.2", "-sSkLfgN", "--retry-delay=2",
        "--path-as-is --globoff --no-progress-meter --basic", "-H 'X;' -H 'Expect:' -H 'Host: b.example'",
    ])
    func `an option that changes nothing is accepted`(options: String) async throws {
        let ending = try await run("a.example/b \(options) -F a=1 --dry-run")
        #expect(ending.status == 0 && ending.messages.isEmpty, "\(ending.messages)")
        #expect(ending.text.hasPrefix("POST /b HTTP/1.1\r\n") && !ending.text.contains("Expect"), "\(ending.text)")
        #expect(ending.text.components(separatedBy: "Host: ").count == 2, "\(ending.text)")
    }

    @Test func `a URL without a scheme is one of http, as for curl`() async throws {
        let server = try await RunningServer(["serve", "--port", "0", "--directory", folder.path + "/received"])
        let address = server.address.replacing("http://", with: "")
        let ending = try await run("\(address)/uploads -F a=1")
        #expect(ending.status == 0, "\(ending.messages)")
    }

    @Test(arguments: [
        ("Content-Type: multipart/mixed", "Content-Type"),
        ("content-type: multipart/form-data; boundary=xoxo", "content-type"),
        ("Content-Length: 5", "Content-Length"), ("Transfer-Encoding: chunked", "Transfer-Encoding"),
    ])
    func `a header field that the form determines is ignored with a line`(field: String, name: String) async throws {
        for command in ["--dry-run", "--as-curl"] {
            let ending = try await run("http://a.example/ -H '\(field)' -F a=1 \(command)")
            #expect(ending.status == 0)
            #expect(ending.messages.components(separatedBy: "is ignored: the form determines its \(name)").count == 2)
            #expect(!ending.text.contains(field))
        }
    }
}
