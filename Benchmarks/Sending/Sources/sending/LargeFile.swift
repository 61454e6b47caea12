import ChildProcess
import Foundation

/// A file of 1 GiB sent by `postcard send`, with either transport, and by `curl -F`.
struct LargeFile {
    private static let rounds = 7
    private static let size = 1 << 30
    private static let maximumPeakBytes = 64 << 20

    private let file: URL
    private let sink: Sink

    /// Writes the file, whose bytes are in the page cache afterwards.
    init(in folder: URL, to sink: Sink) throws {
        self.sink = sink
        file = folder.appending(path: "large.bin")
        guard FileManager.default.createFile(atPath: file.path, contents: nil) else {
            throw Failure("There is no place for a file of \(Self.size) bytes in \(folder.path).")
        }
        let handle = try FileHandle(forWritingTo: file)
        var generator = SystemRandomNumberGenerator()
        let block = Data((0..<(1 << 20)).map { _ in UInt8.random(in: 0...255, using: &generator) })
        for _ in 0..<(Self.size / block.count) { try handle.write(contentsOf: block) }
        try handle.close()
    }

    /// Runs all, prints a table, and says which goals were met.
    func compare() throws -> [Bool] {
        let form = ["-F", "name=초코", "-F", "file=@\(file.path)"]
        let postcard = [Sink.program("postcard").path, "send", sink.url.absoluteString] + form
        var (curl, asyncHTTP, urlSession) = (Figures(), Figures(), Figures())
        // One round more than counts: the first finds nothing in its caches.
        for round in 0...Self.rounds {
            let results = try [
                run(["curl", "--silent", "--show-error", "--fail"] + form + [sink.url.absoluteString]),
                run(postcard), run(postcard + ["--transport", "urlsession"]),
            ]
            guard round > 0 else { continue }
            curl.add(results[0].seconds, peakBytes: results[0].peak_bytes)
            asyncHTTP.add(results[1].seconds, peakBytes: results[1].peak_bytes)
            urlSession.add(results[2].seconds, peakBytes: results[2].peak_bytes)
        }
        print("1 GiB from a file, \(Self.rounds) rounds by turns\n")
        print(heading(["program", "seconds", "from to", "of curl's", "peak MiB", "goal"]))
        return [
            line("curl -F", curl, of: curl, atMost: nil),
            line("postcard send", asyncHTTP, of: curl, atMost: 1),
            line("postcard send --transport urlsession", urlSession, of: curl, atMost: 2.5),
        ]
    }

    private func run(_ command: [String]) throws -> child_process_result {
        var arguments = command.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        let result = child_process_run(&arguments)
        guard result.status == 0 else { throw Failure("\(command[0]) ended with \(result.status).") }
        let count = try sink.nextCount()
        guard count > Self.size else { throw Failure("Of \(command[0]) only \(count) bytes arrived.") }
        return result
    }

    private func line(_ title: String, _ figures: Figures, of curl: Figures, atMost most: Double?) -> Bool {
        let ratio = figures.median / curl.median
        let isMet = most.map { ratio <= $0 && figures.peakBytes <= Self.maximumPeakBytes } ?? true
        print(
            row([
                title, decimal(figures.median), figures.spread, decimal(ratio),
                decimal(Double(figures.peakBytes) / Double(1 << 20)),
                most.map { verdict("\(decimal($0)), 64 MiB", isMet) } ?? "",
            ]))
        return isMet
    }
}
