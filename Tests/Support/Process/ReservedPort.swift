import Foundation

/// A free port of this machine for servers that are started again and again.
///
/// A socket that is bound but does not listen reserves the port: the system gives it to no other process. On Linux, a
/// server with SO_REUSEADDR can still listen on it. Elsewhere the port is only likely to stay free.
package final class ReservedPort: Sendable {
    package let number: Int

    #if os(Linux) || os(Android)
    private let descriptor: Int32
    #endif

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
        #if os(Linux) || os(Android)
        self.descriptor = descriptor
        #else
        close(descriptor)
        #endif
        number = Int(UInt16(bigEndian: address.sin_port))
        guard isBound else { throw ProgramFailure("There is no free port: \(String(cString: strerror(errno)))") }
    }

    #if os(Linux) || os(Android)
    deinit {
        close(descriptor)
    }
    #endif
}
