import PostcardForm
import PostcardReceiver
import PostcardServer
import PostcardTestSupport
import Testing

@Suite(.timeLimit(.minutes(10)))
struct HelpTests {
    private static let commands = [
        "", "send", "serve", "explain", "conformance", "demo", "queue", "queue add", "queue run", "queue list",
        "queue retry", "queue cancel", "queue pause", "queue resume", "queue clear",
    ]

    @Test(arguments: commands)
    func `help fits 80 columns`(command: String) async throws {
        let ending = try await Program.run(command.split(separator: " ").map(String.init) + ["--help"])
        #expect(ending.status == 0)
        let long = ending.text.split(separator: "\n").filter { $0.count > 80 }
        #expect(long.isEmpty, "\(long)")
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
            ("--upload-expiry", "\(Int(ResumptionOptions().lifetime / .seconds(1)))"),
            ("--screen-timeout", "\(Int(uploads.screeningTimeLimit / .seconds(1)))"),
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
}
