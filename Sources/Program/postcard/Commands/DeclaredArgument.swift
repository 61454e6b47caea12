import ArgumentParser
import Foundation

/// An argument of a command, as the argument parser knows it.
struct DeclaredArgument: Decodable {
    struct Name: Decodable {
        /// `long` or `short`.
        let kind: String
        /// Without dashes.
        let name: String

        /// The name as it is written on the command line.
        var written: String { (kind == "short" ? "-" : "--") + name }
    }

    private let kind: String
    let isRepeating: Bool
    let names: [Name]?

    var isFlag: Bool { kind == "flag" }

    /// The arguments of a command. The argument parser has no public way to list them; it makes its own completions and
    /// manual pages from this dump, whose format has a version.
    static func all(of command: any ParsableCommand.Type) throws -> [DeclaredArgument] {
        struct Dump: Decodable {
            struct Command: Decodable { let arguments: [DeclaredArgument]? }
            let command: Command
        }
        return try JSONDecoder().decode(Dump.self, from: Data(command._dumpHelp().utf8)).command.arguments ?? []
    }
}

extension CommandLineArguments {
    /// Options of curl with one value. In a command that replaces curl the last value counts, as in curl.
    private static let lastCounts: Set<Substring> = [
        "-X", "--request", "-u", "--user", "-m", "--max-time", "-x", "--proxy", "--limit-rate", "--retry",
        "--connect-timeout", "--cacert", "--cert", "--key",
    ]

    /// Checks that no option with one value is given twice: the argument parser would ignore all values but the last.
    ///
    /// - Parameter arguments: The arguments as the parser reads them, from the name of the command on.
    /// - Throws: `ValidationError` if one is.
    static func checkRepetitions(_ arguments: [String]) throws {
        // Parts and header fields repeat in most commands, and are known to.
        let names = arguments.prefix { $0 != "--" }.filter { $0.hasPrefix("-") }.map { $0.prefix { $0 != "=" } }
            .filter { $0 != "--form" && $0 != "--header" }
        guard Set(names).count < names.count else { return }
        var command: any ParsableCommand.Type = Postcard.self
        var rest = arguments[...]
        while let word = rest.first,
            let next = command.configuration.subcommands.first(where: { $0._commandName == word })
        {
            command = next
            rest = rest.dropFirst()
        }
        let replacesCurl = arguments.first == "send" || arguments.starts(with: ["queue", "add"])
        let options = try DeclaredArgument.all(of: command).filter { !$0.isFlag }
        var given: Set<Int> = []
        while let argument = rest.popFirst(), argument != "--" {
            let name = argument.prefix { $0 != "=" }
            guard let index = options.firstIndex(where: { ($0.names ?? []).contains { $0.written == name } }) else {
                continue
            }
            // A value is not an option, whatever it looks like.
            if name.endIndex == argument.endIndex { rest = rest.dropFirst() }
            guard !options[index].isRepeating, !(replacesCurl && lastCounts.contains(name)) else { continue }
            guard given.insert(index).inserted else {
                let file = "\(name)-file"
                let hasFile = options.contains { ($0.names ?? []).contains { $0.written == file } }
                throw ValidationError(
                    "\(name) is given twice, and has one value. "
                        + (hasFile
                            ? "Write several into a file, one per line, and name it with \(file)." : "Write it once."))
            }
        }
    }
}
