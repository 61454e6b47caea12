import Foundation
import PostcardAsyncHTTP
import PostcardClient
import PostcardForm

/// A form of three fields and a picture of 20 KB, 2,000 times: one after the other over a kept connection, and sixteen
/// at a time, compared with a loop over libcurl's easy interface with one handle.
struct SmallForms {
    private static let rounds = 5
    private static let count = 2_000

    private let picture: URL
    private let sink: Sink

    init(in folder: URL, to sink: Sink) throws {
        self.sink = sink
        picture = folder.appending(path: "picture.jpg")
        try Data((0..<20_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }).write(to: picture)
    }

    /// Runs all, prints a table, and says which goals were met.
    func compare() async throws -> [Bool] {
        let client = UploadClient(transport: AsyncHTTPTransport())
        var (easy, one, sixteen) = (Figures(), Figures(), Figures())
        // One round more than counts: the first opens the connections.
        for round in 0...Self.rounds {
            let times = try await [sendByEasyHandle(), send(by: client, atATime: 1), send(by: client, atATime: 16)]
            guard round > 0 else { continue }
            easy.add(times[0])
            one.add(times[1])
            sixteen.add(times[2])
        }
        print("\n\(Self.count) forms of three fields and a picture of 20 KB, \(Self.rounds) rounds by turns\n")
        print(heading(["program", "forms/s", "s, from to", "of curl's", "", "goal"]))
        return [
            line("libcurl's easy interface", easy, of: easy, moreThan: nil),
            line("UploadClient, one at a time", one, of: easy, moreThan: 0.7),
            line("UploadClient, sixteen at a time", sixteen, of: easy, moreThan: 1),
        ]
    }

    private func sendByEasyHandle() throws -> Double {
        let process = Process()
        let output = Pipe()
        process.executableURL = Sink.program("easy")
        process.arguments = [sink.url.absoluteString, picture.path, "\(Self.count)"]
        process.standardOutput = output
        try process.run()
        let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        process.waitUntilExit()
        guard process.terminationStatus == 0, let seconds = Double(text.dropLast()) else {
            throw Failure("The loop over libcurl ended with \(process.terminationStatus).")
        }
        try expectForms()
        return seconds
    }

    private func send(by client: UploadClient, atATime limit: Int) async throws -> Double {
        let clock = ContinuousClock()
        let time = try await clock.measure {
            try await withThrowingTaskGroup { group in
                for sender in 0..<limit {
                    group.addTask {
                        for _ in stride(from: sender, to: Self.count, by: limit) {
                            try await client.upload(form(), to: sink.url)
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
        try expectForms()
        return time / .seconds(1)
    }

    private func form() -> MultipartForm {
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append("dog", named: "kind")
        form.append("안녕하세요, 제주에서", named: "message")
        form.append(fileAt: picture, named: "picture")
        return form
    }

    private func expectForms() throws {
        for _ in 0..<Self.count where try sink.nextCount() < 20_000 { throw Failure("A form did not arrive whole.") }
    }

    private func line(_ title: String, _ figures: Figures, of easy: Figures, moreThan least: Double?) -> Bool {
        let ratio = easy.median / figures.median
        let isMet = least.map { ratio >= $0 } ?? true
        print(
            row([
                title, "\(Int(Double(Self.count) / figures.median))", figures.spread, decimal(ratio), "",
                least.map { verdict(decimal($0), isMet) } ?? "",
            ]))
        return isMet
    }
}
