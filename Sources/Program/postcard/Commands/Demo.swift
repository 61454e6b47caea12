import ArgumentParser
import PostcardAsyncHTTP
import PostcardDemo

struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Sends sample pictures to its own receiver, and checks what arrived.",
        discussion: "The exit status is 0 only if the digest of every stored file equals that of the picture.")

    @Option(help: "Where the form is kept.")
    var directory = "./received"

    func run() async throws {
        try await CommandFailure.reporting {
            var demonstration = Demonstration(directory: directory, transport: AsyncHTTPTransport()) {
                try Terminal.writeLine($0)
            }
            let screen = Terminal.isInteractive ? ProgressScreen() : nil
            demonstration.progress = screen.map { $0.show }
            do {
                try await demonstration.run()
            } catch let failure as Demonstration.Failure {
                throw CommandFailure(description: failure.description, status: ExitStatus.failed)
            }
        }
    }
}
