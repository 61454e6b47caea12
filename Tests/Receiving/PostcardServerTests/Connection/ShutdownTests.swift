import Foundation
import PostcardReceiver
import PostcardReceivingSupport
import PostcardServer
import PostcardTestSupport
import SystemPackage
import Testing

@Suite(.timeLimit(.minutes(10)))
struct ShutdownTests {
    /// Runs a receiver that waits for slow clients until it shuts down.
    private func withPatientReceiver(
        http version: String, _ configure: (inout Receiver) -> Void,
        _ body: (_ receiver: RunningReceiver, _ sender: Sender) async throws -> Void
    ) async throws {
        try await withTemporaryDirectory { directory in
            let isSecure = version != "plain"
            let certificate = isSecure ? try await TestCertificate(in: directory) : nil
            try await withReceiver(in: directory.appending("received")) { receiver in
                receiver.certificate = certificate.map { ServerCertificate(chain: $0.chain, privateKey: $0.privateKey) }
                receiver.connections.idleTimeout = .seconds(600)
                receiver.connections.minimumBytesPerSecond = 0
                configure(&receiver)
            } _: { receiver in
                var options = ["-sS", "--max-time", "300"]
                if let certificate { options += ["--\(version)", "--cacert", certificate.chain.string] }
                try await body(receiver, Sender(url: receiver.url, options: options, directory: directory))
            }
        }
    }

    private struct Sender {
        let url: String
        let options: [String]
        let directory: FilePath

        /// Sends a form with a file.
        ///
        /// - Parameter rate: The bytes per second, as curl writes them.
        func send(bytes: Int, rate: String = "100G") async throws -> Program.Ending {
            let file = directory.appending("file")
            try Data(count: bytes).write(to: URL(filePath: file.string))
            return try await Program.run(
                "curl", options + ["--limit-rate", rate, "-w", "%{http_code}", "-F", "f=@\(file)", "\(url)/uploads"])
        }
    }

    /// The exit status of curl after its own timeout.
    private static let curlTimedOut: Int32 = 28

    @Test(arguments: ["plain", "http1.1", "http2"])
    func `a slow client delays a shutdown for at most its timeout`(version: String) async throws {
        try await withPatientReceiver(http: version) {
            $0.connections.shutdownTimeout = .milliseconds(300)
        } _: { receiver, sender in
            // curl sends something every three seconds, so it notices that the connection is closed.
            async let sent = sender.send(bytes: 20_000_000, rate: "20k")
            try await eventually { try !receiver.incoming.isEmpty }
            await receiver.shutDown()
            let ending = try await sent
            #expect(ending.status != 0 && ending.status != Self.curlTimedOut, "\(ending.messages)")
            #expect(try receiver.records.isEmpty)
        }
    }

    @Test(arguments: ["plain", "http1.1", "http2"])
    func `a shutdown lets an upload in progress finish while there is time`(version: String) async throws {
        try await withPatientReceiver(http: version) {
            $0.connections.shutdownTimeout = .seconds(600)
            // HTTP/2 streams that took longer than this used to be cut off.
            $0.connections.drainTimeout = .milliseconds(10)
        } _: { receiver, sender in
            async let sent = sender.send(bytes: 400_000, rate: "100k")
            // On a busy machine, it may be stored before anyone looks.
            try await eventually { try !receiver.incoming.isEmpty || !receiver.records.isEmpty }
            await receiver.shutDown()
            let ending = try await sent
            #expect(ending.text.hasSuffix("201"), "\(ending.messages)")
            #expect(try receiver.records.count == 1)
        }
    }

    #if os(Linux) || os(macOS)
    @Test(arguments: ["plain", "http2"])
    func `a running screening command is killed after the shutdown timeout`(version: String) async throws {
        try await withTemporaryDirectory { directory in
            let pidFile = directory.appending("pid").string
            try await withPatientReceiver(http: version) {
                let screening = CommandScreening("sh -c 'exec 2>/dev/null; echo $$ > \(pidFile); exec sleep 600'")
                $0.connections.shutdownTimeout = .milliseconds(300)
                $0.uploads.screen = { try await screening.screen($0) }
            } _: { receiver, sender in
                async let sent = sender.send(bytes: 10)
                try await eventually {
                    (try? String(contentsOfFile: pidFile, encoding: .utf8))?.hasSuffix("\n") == true
                }
                await receiver.shutDown()
                let ending = try await sent
                #expect(ending.status != 0 && ending.status != Self.curlTimedOut, "\(ending.messages)")
                let text = try String(contentsOfFile: pidFile, encoding: .utf8)
                let process = try #require(Int32(text.trimmingCharacters(in: .whitespacesAndNewlines)))
                try await eventually { kill(process, 0) != 0 }
                #expect(try receiver.records.isEmpty)
            }
        }
    }
    #endif
}
