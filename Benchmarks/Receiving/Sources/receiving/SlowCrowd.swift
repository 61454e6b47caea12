import Foundation

/// Connections that begin a form and then send one byte a second of it.
struct SlowCrowd: Sendable {
    private static let slotsPerSecond = 50
    private let sockets: [Int32]

    /// - Parameter beginningBytes: What of the file is sent at once.
    init(_ count: Int, beginningBytes: Int, to url: URL) throws {
        let head =
            "POST \(url.path) HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\n"
            + "Content-Length: 10000000\r\n\r\n--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n"
        let beginning = Array(head.utf8) + [UInt8](repeating: UInt8(ascii: "x"), count: beginningBytes)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(url.port ?? 0).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        sockets = try (0..<count).map { _ in
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            let isConnected = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
                }
            }
            guard descriptor >= 0, isConnected else { throw Failure("A slow sender cannot connect: \(errno)") }
            var sent = 0
            while sent < beginning.count {
                let count = beginning[sent...].withUnsafeBytes {
                    send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                guard count > 0 else { throw Failure("A slow sender cannot send: \(errno)") }
                sent += count
            }
            return descriptor
        }
    }

    /// Sends until the receiver has ended every connection, or the time is over, and closes what is left.
    ///
    /// - Returns: After how many seconds the last was ended; `nil` where some were not.
    func run(for duration: Duration) -> Double? {
        let clock = ContinuousClock()
        let start = clock.now
        var open = Set(sockets)
        var slot = 0
        while !open.isEmpty, start.duration(to: clock.now) < duration {
            for descriptor in sockets where Int(descriptor) % Self.slotsPerSecond == slot % Self.slotsPerSecond {
                guard open.contains(descriptor) else { continue }
                var byte = UInt8(ascii: "x")
                let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
                let isOpen = send(descriptor, &byte, 1, flags) == 1 && !Self.isEnded(descriptor, flags)
                if !isOpen {
                    close(descriptor)
                    open.remove(descriptor)
                }
            }
            slot += 1
            let next = start + .seconds(Double(slot) / Double(Self.slotsPerSecond))
            Thread.sleep(forTimeInterval: max(0, clock.now.duration(to: next) / .seconds(1)))
        }
        for descriptor in open { close(descriptor) }
        return open.isEmpty ? start.duration(to: clock.now) / .seconds(1) : nil
    }

    /// Reads what came; a response is followed by the connection's end.
    private static func isEnded(_ descriptor: Int32, _ flags: Int32) -> Bool {
        var bytes = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = recv(descriptor, &bytes, bytes.count, flags)
            guard count > 0 else { return count == 0 || errno != EAGAIN }
        }
    }
}
