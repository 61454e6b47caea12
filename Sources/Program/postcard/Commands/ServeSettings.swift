import ArgumentParser
import Configuration
import Foundation
import PostcardFiles
import PostcardForm
import SystemPackage

/// Adds options of `serve` from the environment and the `--config` file to the command line.
///
/// Every option has a variable, such as `POSTCARD_MAX_BODY` for `--max-body`, and a key in the file, such as
/// `max-body`. The command line has priority over the environment, and the environment over the file.
struct ServeSettings {
    private struct Option {
        let name: String
        let isFlag: Bool
        let isRepeating: Bool
        let opposite: String?

        /// The options that sources of lower priority can no longer set once this option is set: options that exclude
        /// this option, or set the same thing. `arguments` are the arguments that set this option.
        func overridden(setBy arguments: [String]) -> [String] {
            switch name {
            case "directory": ["store", "s3-endpoint", "s3-region"]
            case "store": ["directory", "keep-free"]
            case "resume":
                arguments.contains("--no-resume") ? ["upload-expiry", "interim-responses", "location-origin"] : []
            case "token": ["token-file"]
            case "token-file": ["token"]
            case "read-token": ["read-token-file"]
            case "read-token-file": ["read-token"]
            case "webhook-secret": ["webhook-secret-file"]
            case "webhook-secret-file": ["webhook-secret"]
            default: []
            }
        }
    }

    /// A setting from the environment or the file.
    private struct Setting {
        let option: Option
        let arguments: [String]
        /// The variable or key of the setting and its source, for messages.
        let origin: String
    }

    private let commandLine: [String]
    private let settings: [Setting]

    /// Reads the settings. `commandLine` has the arguments after `serve`, and `environment` all environment variables.
    /// Throws `ValidationError` if the file cannot be read, or a value does not have the type of its option.
    init(_ commandLine: [String], environment: [String: String]) async throws {
        self.commandLine = commandLine
        let options = try Self.options()
        var sources = [try Self.environment(environment)]
        let path = Self.value(of: "config", in: commandLine) ?? environment["POSTCARD_CONFIG"]
        if let path { sources.append(try await Self.file(path, options)) }
        var taken = Set(
            options.filter { Self.has($0, commandLine) }.flatMap { [$0.name] + $0.overridden(setBy: commandLine) })
        var settings: [Setting] = []
        for source in sources {
            var used: [String] = []
            for option in options where !taken.contains(option.name) {
                guard let arguments = try source.arguments(of: option) else { continue }
                settings.append(Setting(option: option, arguments: arguments, origin: source.origin(option.name)))
                used += [option.name] + option.overridden(setBy: arguments)
            }
            taken.formUnion(used)
        }
        self.settings = settings
    }

    /// The arguments of `serve`, including all settings.
    var arguments: [String] { arguments(without: nil) }

    private func arguments(without index: Int?) -> [String] {
        settings.indices.filter { $0 != index }.flatMap { settings[$0].arguments } + commandLine
    }

    /// Parses the arguments of `serve`, including all settings. Throws the error of the parser; if a setting is the
    /// cause, a `ValidationError` that names it and its source.
    func parsed<Command>(by parse: ([String]) throws -> Command) throws -> Command {
        do {
            return try parse(arguments)
        } catch {
            let message = Postcard.message(for: error)
            guard !settings.isEmpty, Postcard.exitCode(for: error) != .success, (try? parse(commandLine)) != nil else {
                throw error
            }
            let causes = settings.indices.filter { (try? parse(arguments(without: $0))) != nil }
            let named = causes.isEmpty ? Array(settings.indices) : causes
            throw ValidationError("\(message) (set by \(named.map { settings[$0].origin }.joined(separator: ", ")))")
        }
    }

    // MARK: - The command line

    private static func options() throws -> [Option] {
        let arguments = try DeclaredArgument.all(of: Serve.self).flatMap { argument in
            (argument.names ?? []).filter { $0.kind == "long" }.map { ($0.name, argument) }
        }
        let names = Set(arguments.map(\.0))
        return arguments.compactMap { name, argument in
            let isOpposite = name.hasPrefix("no-") && names.contains(String(name.dropFirst(3)))
            // These options are only for the command line. A file that names another file, for example, is a mistake.
            guard !isOpposite, !["help", "version", "config"].contains(name) else { return nil }
            return Option(
                name: name, isFlag: argument.isFlag, isRepeating: argument.isRepeating,
                opposite: names.contains("no-\(name)") ? "no-\(name)" : nil)
        }
    }

    private static func has(_ option: Option, _ commandLine: [String]) -> Bool {
        let names = ([option.name] + [option.opposite].compactMap(\.self)).map { "--\($0)" }
        return commandLine.prefix { $0 != "--" }.contains { argument in
            names.contains(argument) || names.contains { argument.hasPrefix($0 + "=") }
        }
    }

    private static func value(of name: String, in commandLine: [String]) -> String? {
        for (index, argument) in commandLine.enumerated() {
            if argument == "--" { return nil }
            if argument.hasPrefix("--\(name)=") { return String(argument.dropFirst(name.count + 3)) }
            if argument == "--\(name)", index + 1 < commandLine.count { return commandLine[index + 1] }
        }
        return nil
    }

    // MARK: - Sources

    /// A source of settings: the environment or the file.
    private struct Source {
        let value: (AbsoluteConfigKey, ConfigType) throws -> LookupResult
        /// Describes an option for messages: by its name in the source, and by the source.
        let origin: (String) -> String

        /// The arguments that set an option to its value in the source; `nil` if the source has no value.
        func arguments(of option: Option) throws -> [String]? {
            if option.isFlag {
                guard case .bool(let isOn)? = try content(option, [.bool], "true or false") else { return nil }
                if isOn { return ["--\(option.name)"] }
                // A flag that is off and has no opposite needs no argument, but no later source can switch it on.
                return option.opposite.map { ["--\($0)"] } ?? []
            }
            let types: [ConfigType] = option.isRepeating ? [.stringArray, .string] : [.string, .int, .double]
            let expected = option.isRepeating ? "a list of texts" : "a text or a number"
            guard let content = try content(option, types, expected) else { return nil }
            let values =
                switch content {
                case .stringArray(let texts): texts
                case .string(let text): [text]
                case .int(let number): ["\(number)"]
                case .double(let number): ["\(number)"]
                default: [String]()
                }
            // The value is attached to the option, because it may begin with a dash.
            return values.map { "--\(option.name)=\($0)" }
        }

        /// The value of an option, as the first type that fits.
        private func content(_ option: Option, _ types: [ConfigType], _ expected: String) throws -> ConfigContent? {
            for type in types {
                if let found = try? value(AbsoluteConfigKey([option.name]), type) {
                    return found.value?.content
                }
            }
            throw ValidationError("\(origin(option.name)) must be \(expected).")
        }
    }

    private static func environment(_ variables: [String: String]) throws -> Source {
        var variables = variables
        // For a Service named postcard, Kubernetes sets POSTCARD_PORT=tcp://10.0.0.1:8080 in each container.
        if let port = variables["POSTCARD_PORT"], port.contains("://") { variables["POSTCARD_PORT"] = nil }
        let provider = EnvironmentVariablesProvider(environmentVariables: variables).prefixKeys(with: "postcard")
        return Source(value: provider.value(forKey:type:)) { name in
            "POSTCARD_\(name.uppercased().replacing("-", with: "_")) in the environment"
        }
    }

    private static func file(_ path: String, _ options: [Option]) async throws -> Source {
        let name = "The file \(path) of --config"
        let bytes: [UInt8]
        do {
            bytes = try SmallFile.bytes(of: FilePath(path))
        } catch {
            throw ValidationError("\(name) \(error)")
        }
        guard let values = try? JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any] else {
            throw ValidationError(#"\#(name) is not a JSON object of options, such as {"max-body": "100MB"}."#)
        }
        if let unknown = values.keys.sorted().first(where: { key in !options.contains { $0.name == key } }) {
            throw ValidationError(
                "'\(unknown)' in \(path) is not an option of serve. postcard serve --help lists them.")
        }
        // A null is refused too, because a token without a value must not give everyone access.
        if let nested = values.first(where: { $0.value is [String: Any] || $0.value is NSNull })?.key {
            throw ValidationError("'\(nested)' in \(path) must be a single value, or a list of texts.")
        }
        let snapshot: JSONSnapshot
        do {
            snapshot = try JSONSnapshot(data: bytes.span.bytes, providerName: path, parsingOptions: .default)
        } catch {
            throw ValidationError("\(name) cannot be used: \(error)")
        }
        return Source(value: snapshot.value(forKey:type:)) { "'\($0)' in \(path)" }
    }
}

/// An argument of a command, as described by the argument parser.
struct DeclaredArgument: Decodable {
    struct Name: Decodable {
        /// The kind of the name: `long` or `short`.
        let kind: String
        /// The name without dashes.
        let name: String

        /// The name with dashes, as on the command line.
        var written: String { (kind == "short" ? "-" : "--") + name }
    }

    private let kind: String
    let isRepeating: Bool
    let names: [Name]?

    var isFlag: Bool { kind == "flag" }

    /// Lists the arguments of a command. The argument parser has no public API for this, but makes completions and
    /// manual pages from the same dump, whose format is versioned.
    static func all(of command: any ParsableCommand.Type) throws -> [DeclaredArgument] {
        struct Dump: Decodable {
            struct Command: Decodable { let arguments: [DeclaredArgument]? }
            let command: Command
        }
        return try JSONDecoder().decode(Dump.self, from: Data(command._dumpHelp().utf8)).command.arguments ?? []
    }
}

extension CommandLineArguments {
    /// The options of curl that may be repeated in the commands that replace curl. Only the last value counts.
    private static let lastCounts: Set<Substring> = [
        "-X", "--request", "-u", "--user", "-m", "--max-time", "-x", "--proxy", "--limit-rate", "--retry",
        "--connect-timeout", "--cacert", "--cert", "--key",
    ]

    /// Throws a `ValidationError` if an option with a single value is repeated, because the parser would ignore all
    /// values but the last. The arguments start with the name of the command.
    static func checkRepetitions(_ arguments: [String]) throws {
        // Most commands repeat only the options for parts and header fields, which may be repeated.
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
            // The next argument is the value, even if it looks like an option.
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
