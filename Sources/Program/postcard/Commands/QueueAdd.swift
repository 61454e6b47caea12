import ArgumentParser
import Foundation
import PostcardClient
import PostcardQueue

struct QueueAdd: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Adds an upload to the queue and prints its identifier.",
        discussion: """
            Examples:
              postcard queue add http://127.0.0.1:8080/uploads -F photo=@cat.jpg
              postcard queue add https://example.com/films -F film=@film.mov --unmetered

            After an exit with 0, the whole form is on disk, and its files may change or be removed. The header fields are \
            stored with it, including secrets, in files that only their owner can read.
            """)

    @OptionGroup
    var target: FormTarget

    @OptionGroup(title: "The form and its request")
    var options: FormOptions

    @OptionGroup
    var location: QueueLocation

    @Flag(help: ArgumentHelp("Accepted from older scripts: files are always copied.", visibility: .private))
    var copy = false

    @Option(
        help: ArgumentHelp("The earliest time to send the upload, such as 2026-12-24T18:00:00Z.", valueName: "time"))
    var notBefore: String?

    @Option(help: "The priority. Uploads with a higher priority are sent first.")
    var priority = 0

    @Option(help: "A name for uploads that are sent one after the other, in the order in which they were added.")
    var group: String?

    @Flag(help: "Wait for a network that is not metered, on platforms that distinguish networks.")
    var unmetered = false

    func validate() throws {
        #if !canImport(Network)
        if unmetered {
            throw ValidationError("This system does not say whether a network is metered. Leave out --unmetered.")
        }
        #endif
        _ = try address()
        _ = try earliest()
    }

    private func address() throws -> URL {
        guard let address = URL(string: target.text), let scheme = address.scheme?.lowercased(),
            ["http", "https"].contains(scheme), address.host() != nil
        else { throw ValidationError("A form cannot be sent to '\(target.text)'. Write the URL as http://host/path.") }
        return address
    }

    private func earliest() throws -> Date? {
        guard let notBefore else { return nil }
        do {
            return try Date.ISO8601FormatStyle().parse(notBefore)
        } catch {
            throw ValidationError("'\(notBefore)' is not a time. Write it as 2026-12-24T18:00:00Z.")
        }
    }

    func run() async throws {
        let conditions = UploadConditions(
            notBefore: try earliest(), networks: unmetered ? .unmetered : .all, priority: priority, group: group)
        let (address, method) = (try address(), try options.method())
        try await CommandFailure.reporting {
            options.sayWhatIsIgnored()
            let headerFields = try options.headerFields()
            let id = try await location.open().enqueue(
                try options.multipartForm(), to: address, method: method, headerFields: headerFields,
                conditions: conditions)
            try Terminal.writeLine("\(id)")
        }
    }
}
