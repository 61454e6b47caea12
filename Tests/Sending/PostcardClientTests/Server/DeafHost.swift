#if os(Linux)
import Foundation
import Glibc
import Testing

/// A port that accepts no more connections: the system's backlog is full, and it leaves
/// every further one without an answer.
final class DeafHost {
    let url: URL
    private var descriptors: [Int32] = []

    init() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        descriptors.append(listener)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let port = try withUnsafeMutablePointer(to: &address) { address in
            try address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                try #require(bind(listener, address, length) == 0)
                try #require(listen(listener, 0) == 0)
                try #require(getsockname(listener, address, &length) == 0)
            }
            return UInt16(bigEndian: address.pointee.sin_port)
        }
        url = try #require(URL(string: "http://127.0.0.1:\(port)/"))
        for _ in 0..<4 {
            let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
            descriptors.append(client)
            _ = withUnsafePointer(to: &address) { address in
                address.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(client, $0, length) }
            }
        }
    }

    deinit {
        for descriptor in descriptors { close(descriptor) }
    }
}
#endif
