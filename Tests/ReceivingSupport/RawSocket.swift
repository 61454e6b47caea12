import Foundation
import enum NIOCore.SocketAddress
import PostcardTestSupport
import Synchronization
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A connection to a port of this machine, over which bytes go as they are.
///
/// Its methods block, but in tasks the asynchronous ones of the same names are called, which wait on a thread of their
/// own: a blocked task would keep the receiver of the same process from responding.
package final class RawSocket: Sendable {
    private let descriptor: FileDescriptor
    private let isClosed = Mutex(false)

    /// - Parameters:
    ///   - address: The client's own address.
    ///   - receiveBufferBytes: How much the system takes for this end while it is not read.
    package init(port: Int, from address: String = "127.0.0.1", receiveBufferBytes: Int32? = nil) throws {
        #if os(Linux)
        let kind = Int32(SOCK_STREAM.rawValue)
        #else
        let kind = SOCK_STREAM
        #endif
        descriptor = FileDescriptor(rawValue: socket(AF_INET, kind, 0))
        #if canImport(Darwin)
        // Elsewhere each send says that a closed connection is an error and no signal.
        var isSilent: Int32 = 1
        setsockopt(
            descriptor.rawValue, SOL_SOCKET, SO_NOSIGPIPE, &isSilent, socklen_t(MemoryLayout<Int32>.size))
        #endif
        if var size = receiveBufferBytes {
            setsockopt(descriptor.rawValue, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        do {
            if address != "127.0.0.1" { try Self.call(bind, descriptor, address, port: 0) }
            try Self.call(connect, descriptor, "127.0.0.1", port: port)
        } catch {
            close()
            throw error
        }
        // A server that never closes or never reads fails the test instead of hanging it, and a busy machine does not.
        var timeout = timeval(tv_sec: RunningReceiver.patience, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor.rawValue, SOL_SOCKET, option, &timeout, socklen_t(MemoryLayout<timeval>.size))
        }
    }

    /// Whether this machine has a second loopback address. On Linux it has all of 127.0.0.0/8.
    package static func canConnect(from address: String) -> Bool {
        #if os(Linux)
        let kind = Int32(SOCK_STREAM.rawValue)
        #else
        let kind = SOCK_STREAM
        #endif
        let descriptor = FileDescriptor(rawValue: socket(AF_INET, kind, 0))
        defer { try? descriptor.close() }
        return (try? call(bind, descriptor, address, port: 0)) != nil
    }

    private static func call(
        _ function: (Int32, UnsafePointer<sockaddr>?, socklen_t) -> Int32, _ descriptor: FileDescriptor,
        _ host: String, port: Int
    ) throws {
        let result = try SocketAddress(ipAddress: host, port: port).withSockAddr { address, size in
            function(descriptor.rawValue, address, socklen_t(size))
        }
        guard result == 0 else { throw Errno(rawValue: errno) }
    }

    deinit {
        close()
    }

    private func close() {
        isClosed.withLock { isClosed in
            if !isClosed { try? descriptor.close() }
            isClosed = true
        }
    }

    @available(*, noasync, message: "It blocks a thread.")
    package func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes { rest in
                #if os(Linux)
                Glibc.send(descriptor.rawValue, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
                #else
                Darwin.send(descriptor.rawValue, rest.baseAddress, rest.count, 0)
                #endif
            }
            guard count > 0 else { throw Errno(rawValue: errno) }
            sent += count
        }
    }

    @available(*, noasync, message: "It blocks a thread.")
    package func send(_ text: String) throws { try send(Array(text.utf8)) }

    package func send(_ bytes: [UInt8]) async throws { try await onThread { try self.send(bytes) } }

    package func send(_ text: String) async throws { try await onThread { try self.send(text) } }

    /// Closes the sending side, and continues to receive.
    package func closeInput() {
        #if os(Linux)
        shutdown(descriptor.rawValue, Int32(SHUT_WR))
        #else
        shutdown(descriptor.rawValue, SHUT_WR)
        #endif
    }

    /// Ends the connection with a reset, as a client does whose phone was switched off.
    package func abort() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(
            descriptor.rawValue, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        close()
    }

    /// Whether something has come, or the end has, once some milliseconds have passed at most.
    @available(*, noasync, message: "It blocks a thread.")
    package func hasReceived(within milliseconds: Int32) -> Bool {
        var entry = pollfd(fd: descriptor.rawValue, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, milliseconds) > 0
    }

    /// Whether something has come, or the end has, by now.
    package var isReadable: Bool {
        hasReceived(within: 0)
    }

    /// Does nothing for a while, as a slow client does.
    @available(*, noasync, message: "It blocks a thread.")
    package static func pause(milliseconds: Int32) {
        poll(nil, 0, milliseconds)
    }

    @available(*, noasync, message: "It blocks a thread.")
    package func receive(upTo count: Int = 64 << 10) throws -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: count)
        let count = try buffer.withUnsafeMutableBytes { try descriptor.read(into: $0) }
        return Array(buffer.prefix(count))
    }

    package func receiveAll() async throws -> [UInt8] { try await onThread { try self.receiveAll() } }

    /// Everything until the server closes.
    @available(*, noasync, message: "It blocks a thread.")
    package func receiveAll() throws -> [UInt8] {
        var bytes: [UInt8] = []
        while true {
            let more = try receive()
            if more.isEmpty { return bytes }
            bytes += more
        }
    }

    package func receive(until text: String) async throws -> String {
        try await onThread { try self.receive(until: text) }
    }

    /// What comes until a text has come.
    @available(*, noasync, message: "It blocks a thread.")
    package func receive(until text: String) throws -> String {
        var received = ""
        while !received.contains(text) {
            let more = try receive()
            guard !more.isEmpty else { throw Errno.connectionReset }
            received += String(decoding: more, as: UTF8.self)
        }
        return received
    }
}

/// The first response among the bytes that a server sent, informational ones left out.
package struct RawResponse: Sendable {
    package let status: Int
    package let headers: [String: String]
    package let body: String
    /// All that was sent.
    package let text: String

    package init(_ bytes: [UInt8]) throws {
        text = String(decoding: bytes, as: UTF8.self)
        var rest = text[...]
        while rest.hasPrefix("HTTP/1.1 1"), let end = rest.range(of: "\r\n\r\n") { rest = rest[end.upperBound...] }
        let parts = rest.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
        let lines = parts.first?.split(separator: "\r\n") ?? []
        status = lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        headers = Dictionary(
            lines.dropFirst().compactMap { line in
                let field = line.split(separator: ":", maxSplits: 1)
                guard field.count == 2 else { return nil }
                return (field[0].lowercased(), field[1].trimmingCharacters(in: .whitespaces))
            }, uniquingKeysWith: { first, _ in first })
        body = parts.count > 1 ? String(parts[1]) : ""
    }

    package var problem: Problem? { try? JSONDecoder().decode(Problem.self, from: Data(body.utf8)) }
}

/// A refusal as other programs read it.
package struct Problem: Decodable, Sendable {
    package struct Limit: Decodable, Sendable {
        package let name: String
        package let value: Int64
    }

    package let type: String
    package let title: String
    package let status: Int
    package let detail: String
    package let code: String
    package let offset: Int64?
    package let part: Int?
    package let fix: String?
    package let limit: Limit?
    package let limits: [Limit]?
}
