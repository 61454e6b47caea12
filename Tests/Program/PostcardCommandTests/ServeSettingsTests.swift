import ArgumentParser
import Foundation
import PostcardTestSupport
import Testing

@testable import postcard

@Suite(.timeLimit(.minutes(10)))
struct ServeSettingsTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private struct Case: Sendable {
        let name: String
        var commandLine: [String] = []
        var environment: [String: String] = [:]
        var file: String?
        let arguments: [String]
    }

    private static let cases: [Case] = [
        Case(name: "nothing", arguments: []),
        Case(
            name: "a variable", environment: ["POSTCARD_MAX_BODY": "2kB", "MAX_BODY": "1"],
            arguments: ["--max-body=2kB"]),
        Case(
            name: "the command line comes before a variable", commandLine: ["--max-body", "1kB"],
            environment: ["POSTCARD_MAX_BODY": "2kB"], arguments: ["--max-body", "1kB"]),
        Case(
            name: "also with an attached value", commandLine: ["--max-body=1kB"],
            environment: ["POSTCARD_MAX_BODY": "2kB"], arguments: ["--max-body=1kB"]),
        Case(
            name: "a longer name is another one", commandLine: ["--max-part-header-fields=9"],
            environment: ["POSTCARD_MAX_PART_HEADER": "200"],
            arguments: ["--max-part-header=200", "--max-part-header-fields=9"]),
        Case(
            name: "a variable comes before the file", environment: ["POSTCARD_PORT": "1"],
            file: #"{"port": 2, "host": "::1"}"#, arguments: ["--port=1", "--host=::1"]),
        Case(
            name: "texts, numbers and flags of a file",
            file: #"{"port": 0, "grace": 0.5, "max-body": "1GB", "open": true, "inspect": false, "resume": true}"#,
            arguments: ["--port=0", "--no-inspect", "--max-body=1GB", "--grace=0.5", "--resume", "--open"]),
        Case(
            name: "the port of a Service of Kubernetes is none",
            environment: [
                "POSTCARD_PORT": "tcp://10.96.0.7:8080", "POSTCARD_PORT_8080_TCP": "tcp://10.96.0.7:8080",
                "POSTCARD_SERVICE_PORT": "8080", "POSTCARD_GRACE": "1",
            ], arguments: ["--grace=1"]),
        Case(
            name: "and leaves that of the file", environment: ["POSTCARD_PORT": "tcp://10.96.0.7:8080"],
            file: #"{"port": 2}"#, arguments: ["--port=2"]),
        Case(name: "a flag that is off", environment: ["POSTCARD_OPEN": "no"], arguments: []),
        Case(
            name: "a flag that is off in the environment and on in the file", environment: ["POSTCARD_OPEN": "false"],
            file: #"{"open": true, "port": 2}"#, arguments: ["--port=2"]),
        Case(
            name: "the opposite of a flag", commandLine: ["--inspect"], environment: ["POSTCARD_INSPECT": "false"],
            arguments: ["--inspect"]),
        Case(
            name: "several values of a variable", environment: ["POSTCARD_ALLOW_HOST": "a.example, b.example"],
            arguments: ["--allow-host=a.example", "--allow-host=b.example"]),
        Case(
            name: "several values of a file", file: #"{"allow-host": ["a,b", "c"], "trust-proxy": "::1"}"#,
            arguments: ["--allow-host=a,b", "--allow-host=c", "--trust-proxy=::1"]),
        Case(
            name: "the command line replaces several values", commandLine: ["--allow-host", "c"],
            environment: ["POSTCARD_ALLOW_HOST": "a,b"], arguments: ["--allow-host", "c"]),
        Case(
            name: "a bucket on the command line replaces a directory", commandLine: ["--store", "s3://a"],
            environment: ["POSTCARD_DIRECTORY": "x"], file: #"{"directory": "y"}"#, arguments: ["--store", "s3://a"]),
        Case(
            name: "a bucket in the environment replaces a directory in the file",
            environment: ["POSTCARD_STORE": "s3://a"], file: #"{"directory": "y"}"#, arguments: ["--store=s3://a"]),
        Case(
            name: "a value that begins with a dash", environment: ["POSTCARD_SCREEN": "-x"],
            arguments: ["--screen=-x"]),
        Case(
            name: "a directory on the command line replaces a bucket, and what belongs to it",
            commandLine: ["--directory", "x"],
            environment: ["POSTCARD_STORE": "s3://a", "POSTCARD_S3_ENDPOINT": "http://b"],
            file: #"{"s3-region": "c"}"#, arguments: ["--directory", "x"]),
        Case(
            name: "without resumption its options have no meaning", commandLine: ["--no-resume"],
            environment: ["POSTCARD_UPLOAD_EXPIRY": "60"], file: #"{"interim-responses": "never"}"#,
            arguments: ["--no-resume"]),
        Case(
            name: "with resumption they do", environment: ["POSTCARD_RESUME": "true"], file: #"{"upload-expiry": 60}"#,
            arguments: ["--resume", "--upload-expiry=60"]),
        Case(
            name: "a token replaces the file of tokens in a later source", commandLine: ["--token", "new"],
            environment: ["POSTCARD_READ_TOKEN_FILE": "r"], file: #"{"token-file": "old", "read-token": "old"}"#,
            arguments: ["--token", "new", "--read-token-file=r"]),
        Case(
            name: "a secret replaces those of a later source", environment: ["POSTCARD_WEBHOOK_SECRET": "a,b"],
            file: #"{"webhook-secret-file": "old"}"#, arguments: ["--webhook-secret=a", "--webhook-secret=b"]),
        Case(
            name: "what tests use is no option", environment: ["POSTCARD_KILLS": "3", "POSTCARD_HELP": "true"],
            arguments: []),
    ]

    @Test(arguments: cases.indices) func `settings become arguments`(index: Int) async throws {
        let item = Self.cases[index]
        var commandLine = item.commandLine
        if let file = item.file { commandLine += ["--config", try folder.file("options", Data(file.utf8)).path] }
        let settings = try await ServeSettings(commandLine, environment: item.environment)
        // In the order of the help.
        let expected = item.arguments + commandLine.dropFirst(item.commandLine.count)
        #expect(settings.arguments.sorted() == expected.sorted(), "\(item.name)")
    }

    @Test func `every option of serve can be set in the environment`() async throws {
        let usage = Serve.helpMessage(columns: 500)
        let names = Set(usage.matches(of: /--(?:no-)?([a-z0-9-]+)/).map { String($0.output.1) })
            .subtracting(["help", "version", "config"])
        #expect(names.count > 40)
        for name in names {
            let variable = "POSTCARD_\(name.uppercased().replacing("-", with: "_"))"
            let settings = try await ServeSettings([], environment: [variable: "true"])
            #expect(settings.arguments.count == 1 && settings.arguments[0].hasPrefix("--\(name)"), "\(name)")
        }
    }

    /// What is wrong, and the message.
    private static let mistakes: [(name: String, environment: [String: String], file: String?, message: String)] = [
        ("a size", ["POSTCARD_MAX_BODY": "much"], nil, "POSTCARD_MAX_BODY in the environment"),
        ("a size in the file", [:], #"{"max-body": "much"}"#, "'max-body' in FILE"),
        ("a number", ["POSTCARD_PORT": "99999"], nil, "99999 is not a port. (set by POSTCARD_PORT in the environment)"),
        ("a flag", ["POSTCARD_OPEN": "perhaps"], nil, "POSTCARD_OPEN in the environment must be true or false."),
        ("a list", [:], #"{"port": [1]}"#, "'port' in FILE must be a text or a number."),
        ("a flag in the file", [:], #"{"open": "perhaps"}"#, "'open' in FILE must be true or false."),
        ("one of several", ["POSTCARD_MAX_FILE": "1kB", "POSTCARD_GRACE": "-1"], nil, "(set by POSTCARD_GRACE in"),
        ("a key that is none", [:], #"{"max-bodies": 1}"#, "'max-bodies' in FILE is not an option of serve."),
        ("a file in the file", [:], #"{"config": "other"}"#, "'config' in FILE is not an option of serve."),
        ("a file that is no object", [:], "[1]", "is not a JSON object of options"),
        ("a file that is no JSON", [:], "port = 1", "is not a JSON object of options"),
        ("an object in the object", [:], #"{"port": {"a": 1}}"#, "'port' in FILE must be a single value"),
        ("null", [:], #"{"token": null}"#, "'token' in FILE must be a single value"),
        ("a list of lists", [:], #"{"allow-host": [["a"]]}"#, "The file FILE of --config cannot be used"),
        (
            "two that need each other", ["POSTCARD_CERTIFICATE": "a"], nil,
            "--certificate and --private-key must be used together. (set by POSTCARD_CERTIFICATE in the environment)"
        ),
        (
            "two that exclude each other", ["POSTCARD_STORE": "s3://a", "POSTCARD_DIRECTORY": "b"], nil,
            "POSTCARD_DIRECTORY in the environment, POSTCARD_STORE in the environment"
        ),
        (
            "a variable that names no file", ["POSTCARD_CONFIG": "/nowhere/file"], nil,
            "The file /nowhere/file of --config"
        ),
    ]

    @Test(arguments: mistakes.indices) func `a mistake names its source and its key`(index: Int) async throws {
        let (name, environment, file, message) = Self.mistakes[index]
        let path = try folder.file("options", Data((file ?? "").utf8)).path
        let ending = try await Program.run(
            ["serve"] + (file == nil ? [] : ["--config", path]), environment: environment)
        #expect(ending.status == 64, "\(name)")
        let text = ending.messages.replacing(/\s+/, with: " ")
        #expect(text.contains(message.replacing("FILE", with: path)), "\(name): \(text)")
    }

    @Test func `a mistake on the command line is not said to be a setting's`() async throws {
        let ending = try await Program.run(
            ["serve", "--port", "99999"], environment: ["POSTCARD_MAX_BODY": "1kB"])
        #expect(ending.status == 64)
        #expect(!ending.messages.contains("POSTCARD"))
    }

    @Test func `a receiver does what environment and file say`() async throws {
        let file = try folder.file("options", Data(#"{"port": 0, "path": "/forms", "max-field": 3}"#.utf8)).path
        let server = try await RunningServer(
            ["serve"],
            environment: [
                "POSTCARD_CONFIG": file, "POSTCARD_DIRECTORY": folder.path + "/received", "POSTCARD_TOKEN": "secret",
            ])
        let post = ["-sS", "-H", "Authorization: Bearer secret"]
        let small = try await Program.run("curl", post + ["-F", "a=b", "\(server.address)/forms"]).json()
        #expect(small["id"] != nil)
        let large = try await Program.run("curl", post + ["-F", "a=long", "\(server.address)/forms"]).json()
        #expect(large["code"] as? String == "field-too-large")
        let other = try await Program.run("curl", ["-sS", "-F", "a=b", "\(server.address)/forms"]).json()
        #expect(other["code"] as? String == "token-missing")
        #expect(await server.terminate() == 0)
    }

    @Test func `help is help, whatever is set`() async throws {
        let ending = try await Program.run(["serve", "--help"], environment: ["POSTCARD_OPEN": "yes"])
        #expect(ending.status == 0)
        #expect(ending.text.contains("POSTCARD_MAX_BODY"))
    }
}
