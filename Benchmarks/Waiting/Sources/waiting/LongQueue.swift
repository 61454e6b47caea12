import Foundation
import PostcardForm
import PostcardQueue

/// A queue in which 100,000 forms wait, opened over and over.
struct LongQueue {
    private static let count = 100_000
    private static let rounds = 5
    private static let maximumOpening = Duration.seconds(1)
    private static let maximumPick = Duration.milliseconds(5)
    private static let maximumPeakBytes = 64 << 20

    let folder: URL

    /// Fills the queue, runs all rounds, prints a table, and says whether every goal was met.
    func compare() async throws -> Bool {
        let clock = ContinuousClock()
        let filling = try await clock.measure { try await fill() }
        let perForm = filling / Self.count / .milliseconds(1)
        show("\(Self.count) forms enqueued, \(decimal(perForm, 3)) ms each without waiting for a disk\n")
        show(
            heading([
                "round", "opened, ms", "started, ms", "1,000 listed, ms", "median pick, ms", "worst, ms", "peak MiB",
            ]))
        let measurements = try (1...Self.rounds).map { number in
            try forgetPages()
            let measurement = try measure()
            show(row(["\(number)"] + measurement.cells))
            return measurement
        }
        let opening = median(measurements.map { $0.opening + $0.starting })
        let pick = median(measurements.map(\.worstPick))
        let peak = measurements.map(\.peakBytes).max() ?? .max
        let goals = [
            ("opened and started in \(milliseconds(opening)) ms of 1,000", opening < Self.maximumOpening),
            ("the next picked in \(milliseconds(pick)) ms of 5 at worst", pick < Self.maximumPick),
            ("\(mebibytes(peak)) MiB of 64", peak <= Self.maximumPeakBytes),
        ]
        show("")
        for (goal, isMet) in goals { show("\(goal): \(isMet ? "met" : "MISSED")") }
        return goals.allSatisfy(\.1)
    }

    private var directory: URL { folder.appending(path: "queue") }

    /// A file system in memory, if there is one with enough room, or the folder. Each form is a separate file, which
    /// takes 4 KiB however small it is.
    private func quickPlace() -> URL {
        let memory = "/dev/shm"
        let attributes = try? FileManager.default.attributesOfFileSystem(forPath: memory)
        let free = (attributes?[.systemFreeSize] as? NSNumber)?.int64Value ?? 0
        return FileManager.default.isWritableFile(atPath: memory) && free > 1 << 30 ? URL(filePath: memory) : folder
    }

    /// Fills the queue where that is quick, because `enqueue` waits until each form is durable, and copies it to the
    /// disk.
    private func fill() async throws {
        let filled = quickPlace().appending(path: folder.lastPathComponent + "-filling")
        defer { try? FileManager.default.removeItem(at: filled) }
        let picture = folder.appending(path: "picture.jpg")
        try Data(repeating: 1, count: 100).write(to: picture)
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append("Greetings from Jeju", named: "message")
        form.append(fileAt: picture, named: "petImage")
        guard let url = URL(string: "http://127.0.0.1:1/uploads") else { throw Failure("There is no such URL.") }
        do {
            let queue = UploadQueue(directory: filled)
            for index in 0..<(Self.count + Self.rounds * Measurement.sent) {
                try await queue.enqueue(
                    form, to: url, conditions: UploadConditions(priority: index % 10 == 7 ? 1 : 0))
            }
        }
        try FileManager.default.copyItem(at: filled, to: directory)
    }

    /// Drops the database and the forms from the page cache, as after a restart of the machine.
    private func forgetPages() throws {
        #if os(Linux)
        // Only pages that are on the disk can be dropped.
        sync()
        for name in try FileManager.default.subpathsOfDirectory(atPath: directory.path) {
            let descriptor = open(directory.appending(path: name).path, O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { continue }
            _ = posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED)
            close(descriptor)
        }
        #endif
    }

    /// One round, in a separate process, because a process never lowers its recorded peak.
    private func measure() throws -> Measurement {
        let process = Process()
        let output = Pipe()
        process.executableURL = Bundle.main.executableURL
        process.arguments = [directory.path]
        process.standardOutput = output
        try process.run()
        let line = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failure("A round ended with \(process.terminationStatus).") }
        return try JSONDecoder().decode(Measurement.self, from: line)
    }
}
