import Foundation
import Inputs
import Logging
import PostcardReceiver
import PostcardServer
import Synchronization

/// To any bytes of a client, the receiver responds with HTTP or closes, within its time limits, and it still serves the
/// next client.
///
/// Input: the bytes of a connection, behind which the client sends no more.
@_cdecl("LLVMFuzzerTestOneInput")
public func heads(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = Input(start, count)
    check(exchange(input.rest(), with: "the input"))
    let health = exchange(
        Array("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8), with: "/health")
    if !health.starts(with: "HTTP/1.1 200 ".utf8) { finding("/health answers \(text(health))") }
    return 0
}

/// Whether the bytes received are none, or begin with a status line (RFC 9112 §4).
private func check(_ response: [UInt8]) {
    if response.isEmpty { return }
    let line = response.prefix { $0 != 13 }
    let words = line.split(separator: 32, maxSplits: 2, omittingEmptySubsequences: false)
    // The version is the request's, of which any minor one is HTTP/1.
    let isVersion = words[0].count == 8 && words[0].starts(with: "HTTP/1.".utf8)
    let isStatus =
        words.count == 3 && words[1].count == 3 && (49...53).contains(words[1].first ?? 0)
        && words[1].allSatisfy { (48...57).contains($0) }
    guard isVersion, isStatus, response.dropFirst(line.count).starts(with: "\r\n".utf8) else {
        finding("no status line: \(text(response))")
    }
}

private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes.prefix(200), as: UTF8.self).debugDescription }

// MARK: - The receiver

/// Where the receiver keeps what it accepts, until the run is over.
private let directory = FileManager.default.temporaryDirectory.appending(path: "postcard-fuzz-\(UUID().uuidString)")

/// The port of a receiver in this process, which the first run starts.
private let port: UInt16 = {
    atexit { try? FileManager.default.removeItem(at: directory) }
    var receiver = Receiver(directory: directory.path(percentEncoded: false))
    receiver.port = 0
    // The stream of events has no end. Nothing else is worth reading here.
    receiver.uploads.access = .none
    receiver.connections.idleTimeout = guardTime
    receiver.connections.keepAliveTimeout = guardTime
    receiver.connections.gracePeriod = guardTime
    receiver.connections.drainTimeout = guardTime
    receiver.logger.logLevel = .critical
    let found = Mutex<UInt16>(0)
    let isRunning = DispatchSemaphore(value: 0)
    let running = receiver
    Task.detached {
        do {
            try await running.run { url in
                found.withLock { $0 = url.split(separator: ":").last.flatMap { UInt16($0) } ?? 0 }
                isRunning.signal()
            }
        } catch {
            finding("the receiver ended: \(error)")
        }
    }
    isRunning.wait()
    return found.withLock { $0 }
}()

/// How long the receiver waits for a client.
private let guardTime = Duration.seconds(2)

// MARK: - A client

/// How long a connection may last: every guard of the receiver once, and time for a busy machine. libFuzzer ends a run
/// after ten seconds.
private let maximumSeconds = 8.0

/// As much of a response as is read.
private let maximumResponseBytes = 1 << 20

/// Sends bytes and says that these were all, and reads what comes until the receiver closes.
private func exchange(_ bytes: [UInt8], with what: String) -> [UInt8] {
    let socket = connected()
    defer { close(socket) }
    let end = Date().addingTimeInterval(maximumSeconds)
    var sent = 0
    while sent < bytes.count {
        let count = uninterrupted {
            bytes[sent...].withUnsafeBytes { send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        }
        // A receiver that has heard enough need not take the rest.
        guard count > 0 else { break }
        sent += count
    }
    shutdown(socket, Int32(SHUT_WR))
    var response: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while response.count < maximumResponseBytes {
        var entry = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        let ready = uninterrupted {
            let left = end.timeIntervalSinceNow
            return left > 0 ? Int(poll(&entry, 1, Int32(left * 1000) + 1)) : 0
        }
        guard ready > 0 else {
            finding("the receiver holds \(what) open after \(maximumSeconds) s; it answered \(text(response))")
        }
        let count = uninterrupted { recv(socket, &buffer, buffer.count, 0) }
        guard count > 0 else { return response }
        response += buffer[..<count]
    }
    return response
}

/// Repeats a system call that a signal interrupts: libFuzzer checks with one how long a run takes.
private func uninterrupted(_ call: () -> Int) -> Int {
    while true {
        let result = call()
        if result >= 0 || errno != EINTR { return result }
    }
}

private func connected() -> Int32 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
    // Neither side waits for the other's bytes for ever.
    var limit = timeval(tv_sec: Int(maximumSeconds), tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    let result = withUnsafeBytes(of: &address) { bytes in
        connect(
            descriptor, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self),
            socklen_t(MemoryLayout<sockaddr_in>.size))
    }
    // An interrupted connection cannot be waited for by another call.
    if result != 0, errno == EINTR {
        close(descriptor)
        return connected()
    }
    if descriptor < 0 || result != 0 { finding("no connection to the receiver: \(String(cString: strerror(errno)))") }
    return descriptor
}
