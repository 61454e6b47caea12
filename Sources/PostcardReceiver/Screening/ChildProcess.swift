#if os(macOS) || os(Linux)
import Foundation
import Synchronization
import SystemPackage

/// A program that is run once, in its own process group.
///
/// The rest of the group is killed when the program has ended or its task is cancelled. A process that the program
/// moved out of the group lives on, has no descriptors of this process, and is not waited for.
final class ChildProcess: Sendable {
    /// How a program ended.
    struct Ending: Sendable {
        /// The exit status. For a program that was killed it is 128 plus the signal's number, as in shells.
        let status: Int32
        /// The beginning of its standard output.
        let output: [UInt8]
    }

    private typealias Waiter = CheckedContinuation<Ending, any Error>

    private enum State {
        case notStarted
        /// `waiter` is `nil` once the task was cancelled: then the process is only still to be reaped.
        case running(pid_t, OutputPipe, waiter: Waiter?)
        case over
    }

    private let state = Mutex(State.notStarted)

    /// Runs a program to its end.
    ///
    /// - Parameters:
    ///   - arguments: The program's path and its arguments.
    ///   - maximumOutputBytes: How much of its standard output is kept. The rest is read and dropped.
    /// - Throws: `CancellationError` at once if the task is cancelled, and `Errno` if the program cannot be started or
    ///   its exit status is lost.
    static func run(_ arguments: [String], maximumOutputBytes: Int) async throws -> Ending {
        let child = ChildProcess()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { waiter in
                // It is blocked while the program runs, so it must not be a thread of a pool.
                Thread.detachNewThread { child.run(arguments, maximumOutputBytes, waiter) }
            }
        } onCancel: {
            child.cancel()
        }
    }

    private func run(_ arguments: [String], _ maximumOutputBytes: Int, _ waiter: Waiter) {
        do {
            let process = try start(arguments, maximumOutputBytes, waiter)
            Self.waitForEnd(of: process)
            reap(process)
            Self.reapOrphans(ofGroup: process)
        } catch {
            waiter.resume(throwing: error)
        }
    }

    private func start(_ arguments: [String], _ maximumOutputBytes: Int, _ waiter: Waiter) throws -> pid_t {
        // Starting takes milliseconds. A cancellation waits for it and then knows what to kill.
        try state.withLock { state in
            guard case .notStarted = state else { throw CancellationError() }
            let (output, input) = try FileDescriptor.pipe()
            defer { try? input.close() }
            do {
                let process = try ProcessSpawn.start(arguments, output: input)
                state = .running(process, OutputPipe(output, maximumBytes: maximumOutputBytes), waiter: waiter)
                return process
            } catch {
                state = .over
                try? output.close()
                throw error
            }
        }
    }

    /// Leaves the process a zombie, so that its number still belongs to its group and to nothing else.
    private static func waitForEnd(of process: pid_t) {
        var information = siginfo_t()
        while waitid(P_PID, id_t(process), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
    }

    private func reap(_ process: pid_t) {
        var status: Int32 = 0
        let (output, waiter, error): (OutputPipe?, Waiter?, Errno?) = state.withLock { state in
            _ = kill(-process, SIGKILL)
            var reaped = waitpid(process, &status, 0)
            while reaped < 0, errno == EINTR { reaped = waitpid(process, &status, 0) }
            defer { state = .over }
            guard case .running(_, let output, let waiter) = state else { return (nil, nil, nil) }
            return (output, waiter, reaped < 0 ? Errno(rawValue: errno) : nil)
        }
        guard let output, let waiter else { return }
        // In a process that ignores SIGCHLD the status is lost. A lost status must not look like success.
        if let error { return output.close { _ in waiter.resume(throwing: error) } }
        let signal = status & 0x7F
        let exitStatus = signal == 0 ? (status >> 8) & 0xFF : 128 + signal
        output.close { waiter.resume(returning: Ending(status: exitStatus, output: $0)) }
    }

    /// Reaps the rest of the group. This process is its parent if it is process 1 of a container; else the call returns
    /// at once. The number still names the group and nothing else, because the system uses all others before it uses
    /// one again.
    private static func reapOrphans(ofGroup group: pid_t) {
        while waitpid(-group, nil, 0) > 0 || errno == EINTR {}
    }

    private func cancel() {
        let (output, waiter): (OutputPipe?, Waiter?) = state.withLock { state in
            switch state {
            case .notStarted:
                state = .over
            case .running(let process, let output, let waiter):
                _ = kill(-process, SIGKILL)
                state = .running(process, output, waiter: nil)
                return (output, waiter)
            case .over: break
            }
            return (nil, nil)
        }
        // The system cannot end some processes, such as one that waits for a lost disk. These are not waited for
        // either.
        guard let waiter else { return }
        output?.close { _ in waiter.resume(throwing: CancellationError()) }
    }
}

/// The reading end of a pipe. It reads at once, so that the writer never waits, and keeps the beginning.
///
/// Unchecked: sources of Dispatch may be used on any thread, and Linux does not declare it.
private final class OutputPipe: @unchecked Sendable {
    private struct State {
        var beginning: [UInt8] = []
        var isClosed = false
        var onClosed: (@Sendable ([UInt8]) -> Void)?
    }

    private let descriptor: FileDescriptor
    private let maximumBytes: Int
    private let queue = DispatchQueue(label: "postcard.screening")
    private let source: any DispatchSourceRead
    private let state = Mutex(State())

    /// How many pieces are read before others have a turn.
    private static let piecesAtATime = 16

    init(_ descriptor: FileDescriptor, maximumBytes: Int) {
        self.descriptor = descriptor
        self.maximumBytes = maximumBytes
        _ = fcntl(descriptor.rawValue, F_SETFD, FD_CLOEXEC)
        _ = fcntl(descriptor.rawValue, F_SETFL, O_NONBLOCK)
        source = DispatchSource.makeReadSource(fileDescriptor: descriptor.rawValue, queue: queue)
        source.setEventHandler { [self] in
            for _ in 0..<Self.piecesAtATime {
                switch readPiece() {
                case .some(0): return source.cancel()
                case .some: break
                case nil: return
                }
            }
        }
        source.setCancelHandler { [self] in
            try? descriptor.close()
            let (onClosed, beginning) = state.withLock { state in
                state.isClosed = true
                return (state.onClosed.take(), state.beginning)
            }
            onClosed?(beginning)
        }
        source.activate()
    }

    /// Reads the bytes in the pipe, without waiting for its end, and closes it.
    ///
    /// - Parameter onClosed: Called with the beginning of all that was read.
    func close(_ onClosed: @escaping @Sendable ([UInt8]) -> Void) {
        queue.async { [self] in
            // A process that was left behind may write more, so stop when enough was read.
            while state.withLock({ !$0.isClosed && $0.beginning.count < maximumBytes }),
                let count = readPiece(), count > 0
            {}
            let beginning = state.withLock { state in
                if !state.isClosed { state.onClosed = onClosed }
                return state.isClosed ? state.beginning : nil
            }
            if let beginning { onClosed(beginning) } else { source.cancel() }
        }
    }

    /// - Returns: How many bytes were read, 0 at the end or after an error, and `nil` if there are none yet.
    private func readPiece() -> Int? {
        withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 1) { piece in
            let count = read(descriptor.rawValue, piece.baseAddress, piece.count)
            guard count > 0 else { return count < 0 && (errno == EAGAIN || errno == EINTR) ? nil : 0 }
            state.withLock { state in
                state.beginning += piece.prefix(min(count, maximumBytes - state.beginning.count))
            }
            return count
        }
    }
}
#endif
