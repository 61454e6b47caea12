import Foundation
import PostcardTestSupport
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A connection to the transfer daemon: commands with replies, and events in between.
final class DaemonConnection: Sendable {
    private struct State {
        var number = 0
        var responses: [Int: CheckedContinuation<DaemonMessage, any Error>] = [:]
        var isClosed = false
    }

    private let descriptor: Int32
    private let state = Mutex(State())
    private let writing = Mutex(())

    /// Connects to a daemon.
    ///
    /// - Parameters:
    ///   - path: The path of its socket.
    ///   - receive: Called with each event in turn, on the connection's thread.
    ///   - close: Called once, after the daemon or ``close()`` has closed the connection.
    init(
        to path: String, _ receive: @escaping @Sendable (DaemonMessage) -> Void,
        onClose close: @escaping @Sendable () -> Void = {}
    ) throws {
        #if canImport(Glibc)
        let type = Int32(SOCK_STREAM.rawValue)
        #else
        let type = SOCK_STREAM
        #endif
        descriptor = socket(AF_UNIX, type, 0)
        guard descriptor >= 0 else { throw DaemonFailure(path, String(cString: strerror(errno))) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8) + [0]
        guard bytes.count <= MemoryLayout.size(ofValue: address.sun_path) else {
            _ = Self.closeDescriptor(descriptor)
            throw DaemonFailure(path, "The path is too long for a socket")
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard status == 0 else {
            let reason = String(cString: strerror(errno))
            _ = Self.closeDescriptor(descriptor)
            throw DaemonFailure(path, reason)
        }
        #if canImport(Darwin)
        var isOn: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &isOn, socklen_t(MemoryLayout<Int32>.size))
        #endif
        // The thread keeps the connection alive, and closes the descriptor after it has read the last byte.
        Thread.detachNewThread { [self] in
            readLines(receive)
            end()
            close()
        }
    }

    /// Sends a command and waits for its reply.
    func command(_ command: DaemonCommand) async throws -> DaemonMessage {
        let response = try await withCheckedThrowingContinuation { continuation in
            var command = command
            let number = state.withLock { state -> Int? in
                guard !state.isClosed else { return nil }
                state.number += 1
                state.responses[state.number] = continuation
                return state.number
            }
            guard let number else { return continuation.resume(throwing: DaemonFailure.closed) }
            command.number = number
            write(command)
        }
        if let error = response.error { throw DaemonFailure(command.do, error) }
        return response
    }

    /// Sends a command that has no reply.
    func notify(_ command: DaemonCommand) {
        write(command)
    }

    /// Closes the connection. Commands that wait for their replies throw.
    func close() {
        state.withLock { if !$0.isClosed { _ = shutdown(descriptor, Int32(SHUT_RDWR)) } }
    }

    private func readLines(_ receive: (DaemonMessage) -> Void) {
        let decoder = JSONDecoder()
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        var rest: [UInt8] = []
        while true {
            let count = buffer.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            rest += buffer[..<count]
            var lines = rest.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            rest = lines.popLast().map(Array.init) ?? []
            for line in lines {
                guard let message = try? decoder.decode(DaemonMessage.self, from: Data(line)) else { return }
                guard let number = message.response else {
                    receive(message)
                    continue
                }
                state.withLock { $0.responses.removeValue(forKey: number) }?.resume(returning: message)
            }
        }
    }

    private func write(_ command: DaemonCommand) {
        guard var bytes = try? JSONEncoder().encode(command) else { return }
        bytes.append(UInt8(ascii: "\n"))
        writing.withLock { _ in
            // The reading thread notices a broken connection.
            var rest = bytes[...]
            while !rest.isEmpty, !state.withLock({ $0.isClosed }) {
                let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Self.sendFlags) }
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return }
                rest = rest.dropFirst(count)
            }
        }
    }

    private func end() {
        let responses = writing.withLock { _ in
            state.withLock { state in
                state.isClosed = true
                _ = Self.closeDescriptor(descriptor)
                defer { state.responses = [:] }
                return state.responses
            }
        }
        for (_, continuation) in responses { continuation.resume(throwing: DaemonFailure.closed) }
    }

    private static func closeDescriptor(_ descriptor: Int32) -> Int32 {
        #if canImport(Glibc)
        Glibc.close(descriptor)
        #elseif canImport(Musl)
        Musl.close(descriptor)
        #else
        Darwin.close(descriptor)
        #endif
    }

    private static var sendFlags: Int32 {
        #if canImport(Darwin)
        0
        #else
        Int32(MSG_NOSIGNAL)
        #endif
    }
}

/// An error of the transfer daemon, or of the connection to it.
package struct DaemonFailure: Error, CustomStringConvertible {
    package let description: String

    init(_ path: String, _ reason: String) {
        description = "The transfer daemon (\(path)): \(reason)."
    }

    private init(_ description: String) {
        self.description = description
    }

    /// The daemon has closed the connection, or this process has.
    static let closed = DaemonFailure("The connection to the transfer daemon is closed.")
}
