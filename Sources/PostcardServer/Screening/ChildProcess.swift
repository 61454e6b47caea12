#if Server && (os(macOS) || os(Linux))
import Foundation
import Synchronization
import SystemPackage

/// A program that is run once, and killed where nobody waits for it any more.
final class ChildProcess: Sendable {
    private enum State {
        case notStarted
        case running(pid_t)
        case over
    }

    private let state = Mutex(State.notStarted)

    /// - Returns: The exit status; that of a program that was killed is the signal and 128, as shells have it.
    func run(_ arguments: [String], output: FilePath) async throws -> Int32 {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                do {
                    try start(arguments, output: output) { continuation.resume(returning: $0) }
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        } onCancel: {
            kill()
        }
    }

    private func start(
        _ arguments: [String], output: FilePath, onEnd: @escaping @Sendable (Int32) -> Void
    ) throws {
        let process = Process()
        process.executableURL = URL(filePath: arguments[0])
        process.arguments = Array(arguments.dropFirst())
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = try FileHandle(forWritingTo: URL(filePath: output.string))
        process.terminationHandler = { process in
            self.state.withLock { $0 = .over }
            let isSignal = process.terminationReason == .uncaughtSignal
            onEnd(isSignal ? 128 + process.terminationStatus : process.terminationStatus)
        }
        try state.withLock { state in
            // Cancelled before it began.
            guard case .notStarted = state else { throw CancellationError() }
            // Its end is told on another thread, which waits for this lock.
            try process.run()
            state = .running(process.processIdentifier)
        }
    }

    private func kill() {
        state.withLock { state in
            switch state {
            case .notStarted: state = .over
            case .running(let id):
                // With it goes what it started, where it leads a group of its own.
                _ = Foundation.kill(getpgid(id) == id ? -id : id, SIGKILL)
            case .over: break
            }
        }
    }
}
#endif
