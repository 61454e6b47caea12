import Foundation
import PostcardAsyncHTTP
import PostcardClient
import PostcardQueue

/// Reads the paths of queues from standard input, one per line. Uses each queue in every way that a program can, and
/// then writes a line: PostcardQueueVictim.
@main struct QueueVictim {
    private let client = UploadClient(
        transport: AsyncHTTPTransport(), retryPolicy: .never, timeouts: UploadTimeouts(idle: .seconds(20)))

    static func main() async {
        say("ready")
        let victim = QueueVictim()
        while let path = readLine() {
            do {
                try await victim.use(URL(filePath: path))
                say("used")
            } catch {
                say("refused: \(error)".replacing("\n", with: " "))
            }
        }
    }

    private static func say(_ line: String) {
        try? FileHandle.standardOutput.write(contentsOf: Data("\(line)\n".utf8))
    }

    private func use(_ directory: URL) async throws {
        let queue = UploadQueue(directory: directory)
        look(at: try await queue.uploads())
        try await drain(queue)
        for upload in try await queue.uploads() {
            try? await queue.retry(upload.id)
            try? await queue.pause(upload.id)
            try? await queue.resume(upload.id)
        }
        try await drain(queue)
        let uploads = try await queue.uploads()
        look(at: uploads)
        if let first = uploads.first { try? await queue.cancel(first.id) }
        try await queue.retryAll()
        try await queue.pause()
        try await queue.resume()
        try await queue.cancelAll()
        try await queue.clear(.ended)
        try await drain(queue)
    }

    /// Reads what a list on a screen shows.
    private func look(at uploads: [QueuedUpload]) {
        for upload in uploads {
            _ = upload.fraction
            for part in upload.parts { _ = upload.fraction(of: part) }
            if case .retrying(let due, _) = upload.state { _ = due.formatted(.iso8601) }
        }
    }

    /// Sends until nothing is left that is due soon.
    private func drain(_ queue: UploadQueue) async throws {
        var policy = RetryPolicy(maximumAttempts: 2)
        policy.firstDelay = .milliseconds(1)
        let options = QueueOptions(retryPolicy: policy, endsWhenEmpty: true)
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                try await queue.run(client, options: options)
                return true
            }
            group.addTask {
                // Some uploads stay due.
                for _ in 0..<100 where try await queue.uploads().contains(where: { $0.state == .sending || isDue($0) })
                {
                    try await Task.sleep(for: .milliseconds(50))
                }
                // Time for uploads that cannot be read and are in no list.
                try await Task.sleep(for: .milliseconds(200))
                return false
            }
            defer { group.cancelAll() }
            _ = try await group.next()
        }
    }

    private func isDue(_ upload: QueuedUpload) -> Bool {
        let soon = Date(timeIntervalSinceNow: 1)
        switch upload.state {
        case .retrying(let due, _): return due < soon
        case .waiting: return upload.conditions.group == nil && upload.conditions.notBefore.map { $0 < soon } ?? true
        default: return false
        }
    }
}
