import Foundation

/// A free port of this machine for servers that are started again and again: no other process gets it meanwhile.
///
/// A socket that is bound and does not listen keeps it. A server with SO_REUSEADDR can listen beside it, and who asks the
/// system for a free port or connects is given another.
package final class ReservedPort: Sendable {
    package let number: Int

    private let descriptor: Int32

    package init() throws {
        #if canImport(Glibc)
        let type = Int32(SOCK_STREAM.rawValue)
        #else
        let type = SOCK_STREAM
        #endif
        let descriptor = socket(AF_INET, type, 0)
        var isOn: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &isOn, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
            }
        }
        self.descriptor = descriptor
        number = Int(UInt16(bigEndian: address.sin_port))
        guard isBound else { throw ProgramFailure("There is no free port: \(String(cString: strerror(errno)))") }
    }

    deinit {
        close(descriptor)
    }
}
