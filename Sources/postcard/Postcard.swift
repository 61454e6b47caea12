import ArgumentParser

/// The program: one command for each thing that is done with a form.
@main
struct Postcard: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "postcard",
        abstract: "Sends forms with pictures, receives them, and says what is wrong with one.",
        version: "0.1.0",
        subcommands: [Send.self, Queue.self, Serve.self, Explain.self, Demo.self])

    static func main() async {
        await main(JoinedOptions.parted(CommandLine.arguments.dropFirst()))
    }
}
