import Foundation

/// A file of 1 GiB, sent by `curl -F` to both receivers alternately.
struct LargeFile {
    private static let rounds = 7
    private static let size = 1 << 30
    private static let maximumPeakBytes = 64 << 20

    let folder: URL
    let yardstick: URL

    /// Runs all, prints a table, and says which goals were met.
    func compare() throws -> [Bool] {
        let file = try writeFile()
        defer { try? FileManager.default.removeItem(at: file) }
        let receivers = try Receiver.Kind.allCases.map { try Receiver($0, in: folder, yardstick: yardstick) }
        defer { for receiver in receivers { try? receiver.end() } }
        var seconds = [Figures](repeating: Figures(), count: receivers.count)
        // One round more than counts: the first finds nothing in its caches.
        for round in 0...Self.rounds {
            for index in round % 2 == 0 ? [0, 1] : [1, 0] {
                let receiver = receivers[index]
                // No program has to wait for what another one has left for the disk to write.
                sync()
                let result = try run([
                    "curl", "--silent", "--show-error", "--fail", "--output", "/dev/null", "-F", "name=초코",
                    "-F", "file=@\(file.path)", receiver.url.absoluteString,
                ])
                guard try receiver.count == 1 else { throw Failure("The file was not received.") }
                try receiver.clear()
                if round > 0 { seconds[index].add(result.seconds) }
            }
        }
        show("1 GiB by curl -F, \(Self.rounds) rounds by turns\n")
        show(heading(["receiver", "seconds", "from to", "of Go's", "CPU s/GiB", "peak MiB", "goal"]))
        return try zip(Receiver.Kind.allCases, receivers).enumerated().map { index, contestant in
            let (kind, receiver) = contestant
            let ratio = seconds[index].median / seconds[1].median
            let peak = try receiver.peakBytes
            let isMet = kind == .yardstick || (ratio <= 1 && peak <= Self.maximumPeakBytes)
            show(
                row([
                    kind.rawValue, decimal(seconds[index].median), seconds[index].spread, decimal(ratio),
                    decimal(try receiver.processorSeconds / Double(Self.rounds + 1)), mebibytes(peak),
                    kind == .postcard ? verdict("1.00, 64 MiB", isMet) : "",
                ]))
            return isMet
        }
    }

    private func writeFile() throws -> URL {
        let file = folder.appending(path: "large.bin")
        guard FileManager.default.createFile(atPath: file.path, contents: nil) else {
            throw Failure("There is no place for a file of \(Self.size) bytes in \(folder.path).")
        }
        let handle = try FileHandle(forWritingTo: file)
        var generator = SystemRandomNumberGenerator()
        let block = Data((0..<(1 << 20)).map { _ in UInt8.random(in: 0...255, using: &generator) })
        for _ in 0..<(Self.size / block.count) { try handle.write(contentsOf: block) }
        try handle.close()
        sync()
        return file
    }
}
