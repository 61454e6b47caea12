#if os(macOS) || os(Linux)
import Foundation
import Synchronization
import SystemPackage

/// A program that runs once, in its own process group.
///
/// When the program ends or its task is cancelled, the other processes of the group are killed. A process that has left
/// the group continues to run. It has no descriptors of this process, and is not waited for.
final class ChildProcess: Sendable {
    /// The result of a program that has ended.
    struct Ending: Sendable {
        /// The exit status. For a killed program, 128 plus the number of the signal, as in shells.
        let status: Int32
        /// The first bytes of the program's standard output.
        let output: [UInt8]
    }

    /// The prefix of the environment variables with the receiver's options, which include tokens and secrets.
    static let options = "POSTCARD_"

    private typealias Waiter = CheckedContinuation<Ending, any Error>

    private enum State {
        case notStarted
        /// The program runs. After the task is cancelled, `waiter` is `nil`, and the process must only be reaped.
        case running(pid_t, waiter: Waiter?)
        case over
    }

    private let state = Mutex(State.notStarted)

    /// Runs a program and waits until it ends. `arguments` are the program's path and its arguments. Environment
    /// variables whose names begin with one of `secrets` are hidden from the program. The first `maximumOutputBytes` of
    /// its standard output are kept. Throws `CancellationError` at once if the task is cancelled, and `Errno` if the
    /// program cannot be started or its exit status is lost.
    static func run(
        _ arguments: [String], without secrets: [String], maximumOutputBytes: Int
    ) async throws -> Ending {
        let environment = ProcessInfo.processInfo.environment.filter { variable in
            !secrets.contains { variable.key.hasPrefix($0) }
        }
        let child = ChildProcess()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { waiter in
                // The thread is blocked while the program runs, so it must not be a thread of a pool.
                Thread.detachNewThread { child.run(arguments, environment, maximumOutputBytes, waiter) }
            }
        } onCancel: {
            child.cancel()
        }
    }

    private func run(
        _ arguments: [String], _ environment: [String: String], _ maximumOutputBytes: Int, _ waiter: Waiter
    ) {
        do {
            let (process, descriptor) = try start(arguments, environment, waiter)
            var output = OutputPipe(descriptor, maximumBytes: maximumOutputBytes)
            while !isCancelled, !Self.hasEnded(process), output.readPiece(waitingMilliseconds: Self.pauseMilliseconds) {
            }
            // The system cannot end some programs, such as one that waits for a lost disk. The descriptor is therefore
            // closed before the wait for the end.
            if isCancelled { output.close() }
            Self.waitForEnd(of: process)
            let (ended, ending) = reap(process)
            Self.reapOrphans(ofGroup: process)
            let beginning = output.close()
            ended?.resume(with: ending.map { Ending(status: $0, output: beginning) })
        } catch {
            waiter.resume(throwing: error)
        }
    }

    /// The maximum time until the program's end is noticed, if another process keeps the program's output open. Without
    /// such a process, the end is noticed at once.
    private static let pauseMilliseconds: Int32 = 20

    private var isCancelled: Bool {
        state.withLock { if case .running(_, waiter: nil) = $0 { true } else { false } }
    }

    private func start(
        _ arguments: [String], _ environment: [String: String], _ waiter: Waiter
    ) throws -> (pid_t, output: FileDescriptor) {
        // Starting takes milliseconds. A cancellation waits for the start, so that it knows the process to kill.
        try state.withLock { state in
            guard case .notStarted = state else { throw CancellationError() }
            let (output, input) = try FileDescriptor.pipe()
            defer { try? input.close() }
            do {
                let process = try ProcessSpawn.start(arguments, output: input, environment: environment)
                state = .running(process, waiter: waiter)
                return (process, output)
            } catch {
                state = .over
                try? output.close()
                throw error
            }
        }
    }

    private static func hasEnded(_ process: pid_t) -> Bool {
        var information = siginfo_t()
        // `waitid` fills in the information only if the process has ended.
        return waitid(P_PID, id_t(process), &information, WEXITED | WNOWAIT | WNOHANG) == 0
            ? information.si_signo != 0 : errno != EINTR
    }

    /// Waits until the process ends. The process stays a zombie, so that the system does not reuse its number.
    private static func waitForEnd(of process: pid_t) {
        var information = siginfo_t()
        while waitid(P_PID, id_t(process), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
    }

    /// Kills the group and reaps the program. Returns its exit status, and the waiter, which is `nil` if its task was
    /// cancelled.
    private func reap(_ process: pid_t) -> (Waiter?, Result<Int32, any Error>) {
        var status: Int32 = 0
        let (waiter, error): (Waiter?, Errno?) = state.withLock { state in
            _ = kill(-process, SIGKILL)
            var reaped = waitpid(process, &status, 0)
            while reaped < 0, errno == EINTR { reaped = waitpid(process, &status, 0) }
            defer { state = .over }
            guard case .running(_, let waiter) = state else { return (nil, nil) }
            return (waiter, reaped < 0 ? Errno(rawValue: errno) : nil)
        }
        // The status is lost if this process ignores SIGCHLD. A lost status must not look like success.
        if let error { return (waiter, .failure(error)) }
        let signal = status & 0x7F
        return (waiter, .success(signal == 0 ? (status >> 8) & 0xFF : 128 + signal))
    }

    /// Reaps the killed processes of the group. They are children of this process only if this process is process 1 of
    /// a container; otherwise the call returns at once. The system does not reuse the group's number meanwhile, because
    /// it first uses all other numbers.
    private static func reapOrphans(ofGroup group: pid_t) {
        while waitpid(-group, nil, 0) > 0 || errno == EINTR {}
    }

    private func cancel() {
        let waiter: Waiter? = state.withLock { state in
            switch state {
            case .notStarted:
                state = .over
                return nil
            case .running(let process, let waiter):
                _ = kill(-process, SIGKILL)
                state = .running(process, waiter: nil)
                return waiter
            case .over: return nil
            }
        }
        // The system cannot end some processes, such as one that waits for a lost disk, so the task does not wait.
        waiter?.resume(throwing: CancellationError())
    }
}

/// The reading end of a pipe. Bytes are read as they arrive, so that the writer never waits. The first bytes are kept.
///
/// System calls are used, because Dispatch sources that are made and released on many threads crash the process on
/// Linux (swift-corelibs-libdispatch issue 949).
private struct OutputPipe {
    private var descriptor: FileDescriptor?
    private let maximumBytes: Int
    private var beginning: [UInt8] = []

    init(_ descriptor: FileDescriptor, maximumBytes: Int) {
        self.descriptor = descriptor
        self.maximumBytes = maximumBytes
        _ = fcntl(descriptor.rawValue, F_SETFD, FD_CLOEXEC)
        _ = fcntl(descriptor.rawValue, F_SETFL, O_NONBLOCK)
    }

    /// Reads the bytes in the pipe. If the pipe is empty, first waits for at most the given time. Returns whether more
    /// bytes may follow.
    mutating func readPiece(waitingMilliseconds: Int32) -> Bool {
        guard let descriptor else { return false }
        var wanted = pollfd(fd: descriptor.rawValue, events: Int16(POLLIN), revents: 0)
        return poll(&wanted, 1, waitingMilliseconds) <= 0 || readPiece(descriptor) != 0
    }

    /// Reads the bytes in the pipe without waiting for more, and closes the pipe. Returns the first bytes of the whole
    /// output.
    @discardableResult
    mutating func close() -> [UInt8] {
        guard let descriptor else { return beginning }
        // Reading stops after enough bytes, because a process that has left the group may continue to write.
        while beginning.count < maximumBytes, let count = readPiece(descriptor), count > 0 {}
        try? descriptor.close()
        self.descriptor = nil
        return beginning
    }

    /// Reads once, and returns the number of bytes: 0 at the end or after an error, `nil` if the pipe is empty.
    private mutating func readPiece(_ descriptor: FileDescriptor) -> Int? {
        withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 1) { piece in
            let count = read(descriptor.rawValue, piece.baseAddress, piece.count)
            guard count > 0 else { return count < 0 && (errno == EAGAIN || errno == EINTR) ? nil : 0 }
            beginning += piece.prefix(min(count, maximumBytes - beginning.count))
            return count
        }
    }
}
#endif
