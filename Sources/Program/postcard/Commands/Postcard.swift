#if !CommandLine
#error("The postcard program needs the trait CommandLine of this package: swift build --traits CommandLine")
#endif

import ArgumentParser
import Foundation

/// The program `postcard`, with its commands.
@main
struct Postcard: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "postcard",
        abstract: "Sends forms with pictures, receives them, and says what is wrong with a request.",
        discussion: """
            Examples:
              postcard serve
              postcard send http://127.0.0.1:8080/uploads -F name=초코 -F photo=@cat.jpg
              postcard explain request.txt
            """,
        version: "0.1.0",
        subcommands: [Send.self, Queue.self, Serve.self, Explain.self, Conformance.self, Demo.self, Thumbnail.self])

    /// Checks that a word is a command. Without this check, the parser would also report the arguments after the word.
    private static func checkCommand(_ word: String) throws {
        let isGeneral =
            ["", "-h", "--help", "--version", "help"].contains(word) || word.hasPrefix("--experimental-")
            || word.hasPrefix("--generate-")
        let all = configuration.subcommands.map { command in
            (name: "\(command)".lowercased(), isListed: command.configuration.shouldDisplay)
        }
        guard !isGeneral, !all.contains(where: { $0.name == word }) else { return }
        let listed = all.filter(\.isListed).map(\.name)
        throw ValidationError(
            "'\(word)' is not a command. The commands are \(listed.dropLast().joined(separator: ", ")) and "
                + "\(listed.last ?? ""). To send a form, write: postcard send URL -F name=value")
    }

    static func main() async {
        do {
            let arguments = CommandLineArguments.ofProcess
            try checkCommand(ArgumentText(arguments.first ?? []).description)
            let readable = try CommandLineArguments.readable(arguments)
            try CommandLineArguments.checkRepetitions(readable)
            var command = try await parse(readable)
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch {
            let status = exitCode(for: error)
            let message = fullMessage(for: error)
            // The parser prints help itself, but its errors quote arguments, which may be untrusted filenames.
            guard status != .success, !message.isEmpty else { exit(withError: error) }
            Terminal.say(message)
            exit(withError: status)
        }
    }

    /// Parses the command line. `serve` also reads missing options from the environment and a file.
    private static func parse(_ arguments: [String]) async throws -> any ParsableCommand {
        guard arguments.first == "serve" else { return try parseAsRoot(arguments) }
        let settings = try await ServeSettings(
            Array(arguments.dropFirst()), environment: ProcessInfo.processInfo.environment)
        return try settings.parsed { try parseAsRoot(["serve"] + $0) }
    }
}
