#if os(Linux)
import Foundation
import PostcardTestSupport
import Testing

/// What clients that ask and do not read cost `postcard serve`, a process of its own.
@Suite("postcard serve, to clients that do not read", .timeLimit(.minutes(10)))
struct UnreadResponsesTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// Connections that ask for something, and of whose responses nothing is read.
    private final class Readers {
        private var descriptors: [Int32] = []

        init(_ count: Int, asking path: String, of server: URL) throws {
            let request = Array("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = in_port_t(server.port ?? 0).bigEndian
            address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
            for _ in 0..<count {
                let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
                descriptors.append(descriptor)
                var room: Int32 = 4096
                setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &room, socklen_t(MemoryLayout<Int32>.size))
                let isConnected = withUnsafeBytes(of: &address) { bytes in
                    bytes.withMemoryRebound(to: sockaddr.self) { connect(descriptor, $0.baseAddress, 16) == 0 }
                }
                guard isConnected, send(descriptor, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else {
                    throw ProgramFailure("A reader cannot ask: \(errno)")
                }
            }
        }

        /// Waits until every response has begun, on a thread for it.
        func areAnswered() async throws {
            let haveBegun = try await onThread { [descriptors] in
                descriptors.allSatisfy { descriptor in
                    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                    return poll(&entry, 1, 300_000) == 1
                }
            }
            guard haveBegun else { throw ProgramFailure("A request is not answered.") }
        }

        deinit {
            for descriptor in descriptors { close(descriptor) }
        }
    }

    /// What many clients that ask for one thing may cost together. A piece of a file for each would be less, and what
    /// was held before was several times more.
    private static let maximumGrowth = 200 << 20

    @Test(arguments: [("a file", 150), ("a record of control characters", 40)])
    func `responses that nobody reads take little memory, and others are answered beside them`(
        what: String, count: Int
    ) async throws {
        let server = try await RunningServer([
            "serve", "--port", "0", "--directory", folder.path + "/received", "--idle-timeout", "40",
        ])
        let url = try #require(URL(string: server.address))
        let isFile = what == "a file"
        let content = isFile ? Data(count: 32 << 20) : Data(repeating: 1, count: 1_000_000)
        let picture = try folder.file("content", content)
        // A field each, or one file.
        let parts = isFile ? ["f=@\(picture.path)"] : (0..<8).map { "f\($0)=<\(picture.path)" }
        let posted = try await Program.run(
            "curl", ["-sS", "--max-time", "300"] + parts.flatMap { ["-F", $0] } + ["\(server.address)/uploads"])
        let id = try #require(try posted.json()["id"] as? String)
        let path = isFile ? "/uploads/\(id)/files/0" : "/uploads/\(id)"
        func fetch() async throws -> Int {
            try await Program.run("curl", ["-sS", "--max-time", "300", server.address + path]).output.count
        }
        // What the server needs in any case.
        let length = try await fetch()
        #expect(length >= content.count)
        let before = try server.residentBytes
        let readers = try Readers(count, asking: path, of: url)
        try await readers.areAnswered()
        // Meanwhile the others' responses are made as far as they are let.
        var most = try server.residentBytes
        for _ in 0..<5 {
            #expect(try await fetch() == length)
            most = try max(most, server.residentBytes)
        }
        #expect(most - before <= Self.maximumGrowth, "\((most - before) >> 20) MiB more")
        withExtendedLifetime(readers) {}
    }
}
#endif
