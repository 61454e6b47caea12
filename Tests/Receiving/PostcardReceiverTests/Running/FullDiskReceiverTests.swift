import Foundation
import PostcardReceiver
import PostcardReceivingSupport
import PostcardTestSupport
import SystemPackage
import Testing

@Suite(.timeLimit(.minutes(10)), .enabled(if: SmallDisk.isPossible, "A small disk cannot be mounted here."))
struct FullDiskReceiverTests {
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

    @Test func `a disk that can hold no more files takes no form, and its receiver is not healthy`() async throws {
        try await SmallDisk.with(megabytes: 4, files: 100) { disk in
            try await withReceiver(in: disk.appending("received"), { $0.keptFreeBytes = 0 }) { receiver in
                func health() async throws -> String {
                    try await receiver.curl("-o", "/dev/null", "-w", "%{http_code}", receiver.url + "/health").text
                }
                var last = try await receiver.exchange(Self.form(bytes: 1))
                while last.status == 201 {
                    #expect(try receiver.records.count < 100)
                    let isHealthy = try await health() == "200"
                    last = try await receiver.exchange(Self.form(bytes: 1))
                    #expect(isHealthy == (last.status == 201))
                }
                #expect(last.status == 503)
                #expect(last.problem?.code == "store-full")
                #expect(try await health() == "503")
                for record in try receiver.records.prefix(2) {
                    _ = try await receiver.curl("-X", "DELETE", "\(receiver.url)/uploads/\(record)")
                }
                #expect(try await health() == "200")
                #expect(try await receiver.exchange(Self.form(bytes: 1)).status == 201)
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
