import Foundation
import NIOCore
import PostcardReceiver
import PostcardServer
import PostcardTestSupport
import SystemPackage
import Testing

/// A disk of a few megabytes, which takes a mount; where this user may not mount, the tests say that they were skipped.
enum SmallDisk {
    static let isPossible: Bool = {
        #if os(Linux)
        getuid() == 0 && FileManager.default.isExecutableFile(atPath: "/bin/mount")
            && (try? mount(at: FileManager.default.temporaryDirectory.path + "/postcard-probe-\(UUID().uuidString)"))
                == true
        #else
        false
        #endif
    }()

    /// Mounts one for a moment.
    private static func mount(at path: String) throws -> Bool {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: path) }
        guard try run("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", path]) == 0 else { return false }
        return try run("umount", [path]) == 0
    }

    private static func run(_ program: String, _ arguments: [String]) throws -> Int32 {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [program] + arguments
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus
    }

    static func with(megabytes: Int, _ body: (FilePath) async throws -> Void) async throws {
        try await withTemporaryDirectory { directory in
            let options = ["-t", "tmpfs", "-o", "size=\(megabytes)m", "tmpfs", directory.string]
            try #require(try await Program.run("mount", options).status == 0)
            let result: Result<Void, any Error>
            do {
                try await body(directory)
                result = .success(())
            } catch {
                result = .failure(error)
            }
            _ = try await Program.run("umount", ["-l", directory.string])
            try result.get()
        }
    }
}

@Suite(.timeLimit(.minutes(10)), .enabled(if: SmallDisk.isPossible, "A small disk cannot be mounted here."))
struct FullDiskTests {
    private static func form(bytes: Int) -> String {
        Form.request(body: Form.fileHeader + String(repeating: "x", count: bytes) + Form.end)
    }

    @Test func `a form that fills the disk is refused with 503, leaves nothing, and smaller ones are still taken`()
        async throws
    {
        try await SmallDisk.with(megabytes: 4) { disk in
            try await withReceiver(in: disk.appending("received"), { $0.keptFreeBytes = 0 }) { receiver in
                // Chunked, so that its size is not known before.
                let size = 6_000_000
                let body = Form.fileHeader + String(repeating: "x", count: size) + Form.end
                let chunk = String(body.utf8.count, radix: 16) + "\r\n" + body + "\r\n0\r\n\r\n"
                let full = try await receiver.exchange(
                    Form.chunked(chunk).replacing("Host: a", with: "Host: a\r\nConnection: close"))
                #expect(full.status == 503)
                #expect(full.problem?.code == "store-full")
                #expect(full.headers["retry-after"] == "60")
                #expect(try receiver.records.isEmpty)
                #expect(try receiver.incoming.isEmpty)
                let small = try await receiver.exchange(Self.form(bytes: 100_000))
                #expect(small.status == 201)
            }
        }
    }

    @Test func `a form is refused by its announced length before its body is asked for`() async throws {
        try await SmallDisk.with(megabytes: 4) { disk in
            try await withReceiver(in: disk.appending("received"), { $0.keptFreeBytes = 1 << 20 }) { receiver in
                let head = Form.head(contentLength: 3_500_000, fields: ["Expect: 100-continue"])
                let response = try await receiver.exchange(head)
                #expect(response.text.hasPrefix("HTTP/1.1 503"))
                #expect(response.problem?.code == "store-full")
            }
        }
    }

    @Test func `every answered form is whole, whenever the disk fills, and the space that is kept stays free`()
        async throws
    {
        try await SmallDisk.with(megabytes: 8) { disk in
            let kept: Int64 = 2 << 20
            try await withReceiver(in: disk.appending("received"), { $0.keptFreeBytes = kept }) { receiver in
                // One alone fits; of many at once perhaps none does, when all have a share of the space.
                #expect(try await receiver.exchange(Self.form(bytes: 700_000)).status == 201)
                let statuses = try await withThrowingTaskGroup { group in
                    for _ in 0..<32 {
                        group.addTask { try await receiver.exchange(Self.form(bytes: 700_000)).status }
                    }
                    return try await group.reduce(into: [Int]()) { $0.append($1) }
                }
                #expect(Set(statuses).isSubset(of: [201, 503]))
                #expect(statuses.contains(503))
                let taken = 1 + statuses.count { $0 == 201 }
                #expect(try receiver.records.count == taken)
                #expect(try receiver.incoming.isEmpty)
                for id in try receiver.records {
                    let file = receiver.directory.appending(id).appending("0").string
                    #expect(try Data(contentsOf: URL(filePath: file)).count == 700_000)
                }
            }
        }
    }

    @Test func `a known key is answered though the disk is full`() async throws {
        try await SmallDisk.with(megabytes: 4) { disk in
            try await withReceiver(in: disk.appending("received"), { $0.keptFreeBytes = 0 }) { receiver in
                let body = Form.fileHeader + String(repeating: "x", count: 1_500_000) + Form.end
                let request = Form.request(body: body, fields: ["Idempotency-Key: k"])
                let first = try await receiver.exchange(request)
                #expect(first.status == 201)
                let filler = disk.appending("filler").string
                _ = try await Program.run("dd", ["if=/dev/zero", "of=\(filler)", "bs=64k"])
                let other = try await receiver.exchange(Self.form(bytes: 10_000))
                #expect(other.problem?.code == "store-full")
                let again = try await receiver.exchange(request)
                #expect(again.body == first.body)
            }
        }
    }
}
