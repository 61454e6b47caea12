import Foundation
import ServiceLifecycle
import UnixSignals

extension ServiceGroup {
    private enum Event {
        case ended
        case secondSignal(UnixSignal)
        case noMoreSignals
    }

    /// Runs the services until they end. The first SIGTERM or SIGINT, or the cancellation of the task, begins a
    /// graceful shutdown. The second signal ends the process at once.
    func runUntilSignal() async throws {
        // Signals are trapped first, because a signal may arrive as soon as the services print their address.
        let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        // The task is unstructured, because the cancellation of this task also cancels its child tasks. SwiftNIO ends
        // the process if a server is cancelled between accepting and serving a connection (apple/swift-nio#2637).
        let services = Task { try await self.run() }
        try await withTaskCancellationHandler {
            try await waitForEnd(of: services, signals)
        } onCancel: {
            Task { await self.triggerGracefulShutdown() }
        }
    }

    private func waitForEnd(of services: Task<Void, any Error>, _ signals: UnixSignalsSequence) async throws {
        try await withThrowingTaskGroup(of: Event.self) { group in
            defer { group.cancelAll() }
            group.addTask {
                try await services.value
                return .ended
            }
            group.addTask {
                var isShuttingDown = false
                for await signal in signals {
                    if isShuttingDown { return .secondSignal(signal) }
                    isShuttingDown = true
                    await self.triggerGracefulShutdown()
                }
                return .noMoreSignals
            }
            for try await event in group {
                switch event {
                case .ended: return
                case .secondSignal(let signal):
                    // Cancellation kills the screening commands, which would otherwise outlive the process.
                    services.cancel()
                    Self.endProcess(by: signal)
                case .noMoreSignals: break
                }
            }
        }
    }

    /// Ends the process as an unhandled signal does, so that the parent process sees the signal.
    private static func endProcess(by unixSignal: UnixSignal) {
        let number = unixSignal.rawValue
        signal(number, SIG_DFL)
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, number)
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        raise(number)
        // Only reached if another thread has installed a handler for the signal again.
        _exit(128 + number)
    }
}
