import Logging
import NIOCore
import PostcardFoundation

/// Checks at the start that an object store supports what uploads need.
struct StoreProbe: Sendable {
    let objects: ObjectStore
    let logger: Logger

    /// The maximum difference between the store's clock and this machine's, in seconds.
    private static let maximumSkew: TimeInterval = 300

    func run() async throws {
        let folder = ObjectName.probes + ObjectName.random(objects.surroundings) + "/"
        let page = try await objects.list(folder, limit: 1)
        try checkClock(page.time)
        let names = ["a", "b", "c"].map { folder + $0 }
        do {
            for name in names { try await checkCreation(name) }
            try await checkReading(names[0])
            try await checkListing(folder, names)
            try await checkExpiry()
        } catch {
            for name in names { try? await objects.delete(name) }
            throw error
        }
        for name in names { try await objects.delete(name) }
    }

    private func lack(_ what: String, _ why: String) -> S3Error {
        S3Error(
            .unusableStore, "The object store at \(objects.endpoint) \(what). \(why)",
            advice: "Use a store that does this, such as Amazon S3 or Ceph.")
    }

    private func checkClock(_ time: Date) throws {
        let skew = objects.bucket.clock().timeIntervalSince(time)
        guard abs(skew) > Self.maximumSkew else { return }
        throw S3Error(
            .clockSkew,
            "The clock of this machine is \(Int(abs(skew))) seconds \(skew > 0 ? "ahead of" : "behind") that of the "
                + "object store at \(objects.endpoint).",
            advice: "Set the clock of this machine, by NTP.")
    }

    private func checkCreation(_ name: String) async throws {
        let why = "A key could get two records."
        do {
            _ = try await objects.create(name, ByteBuffer(string: "0123456789"))
            guard case .exists = try await objects.create(name, ByteBuffer(string: "other")) else {
                throw lack("overwrites objects in spite of If-None-Match", why)
            }
        } catch let error as S3Error where error.status == 501 {
            throw lack("does not implement PUT with If-None-Match", why)
        }
    }

    private func checkReading(_ name: String) async throws {
        let read = try await objects.get(name, range: 3..<7)
        guard let read, read.body == ByteBuffer(string: "3456") else {
            throw lack("does not answer requests for a range of bytes", "Files could not be read in pieces.")
        }
    }

    private func checkListing(_ folder: String, _ names: [String]) async throws {
        let page = try await objects.list(folder, after: names[0], limit: 1)
        guard page.objects.map(\.key) == [names[1]], page.isTruncated else {
            throw lack("does not list the objects after a key in order", "Records could not be listed.")
        }
    }

    /// Logs a warning if the store accepts old signatures. A receiver that is stopped for a day during a commit could
    /// then make a record whose files were already removed. Its own clock check cannot see a stop after the check.
    private func checkExpiry() async throws {
        guard try await !objects.isRefusedIfSigned(at: objects.bucket.clock() - 3600) else { return }
        logger.warning(
            "The object store accepts old signatures. A receiver that is stopped for a day during a commit may make a record without files."
        )
    }
}
