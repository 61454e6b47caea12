import Foundation
import PostcardClient
import PostcardForm
import PostcardPictures
import PostcardQueue
import PostcardReceiver
import PostcardServer
import PostcardTestSupport
import Testing

@Suite(.timeLimit(.minutes(10)))
struct HelpTests {
    /// A command, as the argument parser describes it.
    private struct Command: Decodable {
        let commandName: String
        let arguments: [Argument]?
        let subcommands: [Command]?
        let shouldDisplay: Bool?

        struct Argument: Decodable {
            let kind: String
            let shouldDisplay: Bool
            let isRepeating: Bool
            let names: [Name]?
            let defaultValue: String?
            let abstract: String?
            let discussion: String?

            struct Name: Decodable {
                let kind: String
                let name: String
            }

            var name: String { names?.first { $0.kind == "long" }?.name ?? "" }
            var text: String { [abstract, discussion].compactMap(\.self).joined(separator: " ") }
        }

        /// The command and those in it that help lists, each with its words.
        func all(after words: [String] = []) -> [(words: [String], command: Command)] {
            [(words, self)]
                + (subcommands ?? []).filter { $0.shouldDisplay != false && $0.commandName != "help" }
                .flatMap { $0.all(after: words + [$0.commandName]) }
        }
    }

    private struct Description: Decodable {
        let command: Command
    }

    private static func commands() async throws -> [(words: [String], command: Command)] {
        let ending = try await Program.run(["--experimental-dump-help"])
        return try JSONDecoder().decode(Description.self, from: ending.output).command.all()
    }

    @Test func `help fits 80 columns`() async throws {
        let commands = try await Self.commands()
        #expect(commands.count > 14)
        for (words, _) in commands {
            let ending = try await Program.run(words + ["--help"])
            #expect(ending.status == 0)
            let long = ending.text.split(separator: "\n").filter { $0.count > 80 }
            #expect(long.isEmpty, "\(words): \(long)")
        }
    }

    /// Options without which the program does nothing of their kind.
    private static let withoutDefault: Set = [
        "against", "as", "body", "cert", "certificate", "content-type", "edit", "fit", "fix", "group", "listen",
        "not-before", "private-key", "read-token", "read-token-file", "rules", "screen", "store", "token",
        "token-file", "url", "user",
    ]

    @Test func `help shows the default of every option`() async throws {
        for (words, command) in try await Self.commands() {
            for option in command.arguments ?? [] where option.kind == "option" && option.shouldDisplay {
                let isShown =
                    option.defaultValue != nil || option.text.contains("Defaults to ")
                    || option.abstract?.contains(/\([^()]+\)[.,]?( |$)/) == true
                #expect(
                    isShown || option.isRepeating || Self.withoutDefault.contains(option.name),
                    "\(words) --\(option.name): \(option.text)")
            }
        }
    }

    @Test func `the defaults in the help are those of the code`() async throws {
        let queue = QueueOptions()
        let timeouts = UploadTimeouts()
        let ratio = (timeouts.response ?? .zero) / (timeouts.idle ?? .zero)
        let texts: [(command: String, option: String, text: String)] = [
            ("send", "max-edge", "Defaults to \(PictureLimit(maximumBytes: 1).maximumEdge) with --fit."),
            ("send", "answer-timeout", "Defaults to \(ratio == 5 ? "five" : "\(ratio)") times --timeout."),
            ("send", "limit-rate", "Defaults to no limit."), ("queue run", "limit-rate", "Defaults to no limit."),
        ]
        let values: [(command: String, option: String, value: Double)] = [
            ("send", "timeout", (timeouts.idle ?? .zero) / .seconds(1)), ("send", "retries", 0),
            ("queue run", "timeout", (timeouts.idle ?? .zero) / .seconds(1)),
            ("queue run", "concurrency", Double(queue.maximumConcurrentUploads)),
            ("queue run", "max-delay", queue.retryPolicy.maximumDelay / .seconds(1)),
            ("queue add", "priority", Double(UploadConditions().priority)),
        ]
        let commands = try await Self.commands()
        func option(_ name: String, of command: String) throws -> Command.Argument {
            let found = commands.first { $0.words.joined(separator: " ") == command }?.command
            return try #require(found?.arguments?.first { $0.name == name }, "\(command) --\(name)")
        }
        for row in texts {
            let text = try option(row.option, of: row.command).text
            #expect(text.contains(row.text), "\(row.command) --\(row.option): \(text)")
        }
        for row in values {
            let value = try option(row.option, of: row.command).defaultValue
            #expect(value.flatMap(Double.init) == row.value, "\(row.command) --\(row.option): \(value ?? "")")
        }
    }

    @Test func `help shows the default of every limit as the code has it`() async throws {
        let (limits, uploads, connections) = (FormLimits(), UploadOptions(), ConnectionOptions())
        let defaults: [(option: String, value: String)] = [
            ("--max-body", "\(limits.maximumBodyBytes >> 30)GiB"), ("--max-file", "that of the body"),
            ("--max-field", "\(limits.maximumFieldBytes >> 20)MiB"), ("--max-parts", "\(limits.maximumParts)"),
            ("--max-part-header", "\(limits.maximumHeaderBytes)"),
            ("--max-part-header-fields", "\(limits.maximumHeaderFields)"),
            ("--max-preamble", "\(limits.maximumPreambleBytes)"), ("--max-epilogue", "\(limits.maximumEpilogueBytes)"),
            ("--max-uploads", "\(uploads.maximumConcurrentUploads)"),
            ("--client-share", "\(Int(uploads.clientShare * 100))"),
            ("--keep-free", "\(Receiver(directory: "").keptFreeBytes >> 20)MiB"),
            ("--minimum-rate", "\(connections.minimumBytesPerSecond)"),
            ("--grace", "\(Int(connections.gracePeriod / .seconds(1)))"),
            ("--keep-alive-timeout", "\(Int(connections.keepAliveTimeout / .seconds(1)))"),
            ("--idle-timeout", "\(Int(connections.idleTimeout / .seconds(1)))"),
            ("--shutdown-timeout", "\(Int(connections.shutdownTimeout / .seconds(1)))"),
            ("--upload-expiry", "\(Int(UnfinishedUploadOptions().lifetime / .seconds(1)))"),
            ("--interim-responses", UnfinishedUploadOptions().interimResponses.rawValue),
            ("--contradicted-types", uploads.contentTypePolicy.rawValue),
            ("--screen-timeout", "\(Int(uploads.screeningTimeout / .seconds(1)))"),
            ("--keep-for", "no limit"), ("--keep-at-most", "no limit"), ("--config", "POSTCARD_CONFIG"),
            ("--port", "8080"), ("--directory", "./received"), ("--path", uploads.path),
        ]
        let help = try await Program.run(["serve", "--help"]).text.split(whereSeparator: \.isWhitespace)
        for (option, value) in defaults {
            // The name in the usage comes before the one in the list.
            let start = try #require(help.lastIndex { $0 == option }, "\(option)")
            let text = help[(start + 1)...].prefix { !$0.hasPrefix("--") }.joined(separator: " ")
            #expect(
                text.contains("(\(value)") || text.contains("Defaults to \(value)")
                    || text.contains("(default: \(value))"), "\(option): \(text)")
        }
    }

    @Test(
        arguments: [
            ("send", [0, 1, 64, 66, 69, 70, 73, 75]), ("serve", [0, 64, 66, 69, 73, 130, 143]),
            ("explain", [0, 1, 64, 66, 69, 73]), ("conformance", [0, 1, 64, 66, 69, 73]),
        ] as [(String, [Int])])
    func `help lists every exit status`(command: String, statuses: [Int]) async throws {
        let help = try await Program.run([command, "--help"]).text
        let list = try #require(help.firstMatch(of: /\nExit status:\n((?:  .+\n)+)\n/)?.1)
        #expect(list.matches(of: /(?m)^  ([0-9]+) +\S/).compactMap { Int($0.1) } == statuses, "\(list)")
    }

    @Test(arguments: [
        ("send", "--form", "--cacert"), ("queue add", "--form", "--queue"), ("serve", "--port", "--directory"),
    ])
    func `help begins with examples and what is used most`(command: String, first: String, later: String) async throws {
        let help = try await Program.run(command.split(separator: " ").map(String.init) + ["--help"]).text
        let examples = try #require(help.firstRange(of: "\n\nExamples:\n  postcard \(command)"))
        let usage = try #require(help.firstRange(of: "\nUSAGE:"))
        #expect(examples.upperBound < usage.lowerBound)
        let options = help[usage.upperBound...]
        let places = try [first, later].map { try #require(options.firstRange(of: " \($0) ")).lowerBound }
        #expect(places[0] < places[1], "\(command)")
    }

    @Test(arguments: [
        ["sned", "http://127.0.0.1:1/"], ["-F", "a=b"], ["http://127.0.0.1:1/", "-F", "a=b"], ["--sned"],
    ])
    func `a word that is no command leads to those that are`(arguments: [String]) async throws {
        let ending = try await Program.run(arguments)
        #expect(ending.status == 64)
        #expect(ending.messages.contains("'\(arguments[0])' is not a command."), "\(ending.messages)")
        #expect(ending.messages.contains("send, queue, serve, explain, conformance and demo"), "\(ending.messages)")
    }

    @Test func `help shows where a queue is, and how rules are written`() async throws {
        let queue = try await Program.run(["queue", "add", "--help"]).text
        #expect(queue.contains("~/.local/state") || queue.contains("~/Library/Application Support/postcard/queue"))
        let serve = try await Program.run(["serve", "--help"]).text.split(whereSeparator: \.isWhitespace)
            .joined(separator: " ")
        let example = try #require(serve.firstMatch(of: /Such as (\{"fields".*?\}\}\})\./)?.1)
        #expect(throws: Never.self) { try FormRules(json: Data(example.utf8)) }
    }
}
