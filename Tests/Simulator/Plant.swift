import Foundation
import NIOCore
import NIOHTTP1
import PostcardS3
import PostcardServer

/// What a planted bug may use.
struct PlantedWorld: Sendable {
    let network: SimulatedNetwork
    let process: SimulatedProcess

    init(_ network: SimulatedNetwork, _ process: SimulatedProcess) {
        self.network = network
        self.process = process
    }

    /// Carries out a request later, if the receiver lives until then.
    func carryOutLater(_ request: S3Request, signed: Date, _ seconds: ClosedRange<Double>) {
        let (network, process) = (self.network, self.process)
        let delay = network.scheduler.random.time(seconds)
        let call = Call.id
        network.scheduler.schedule(after: delay) {
            guard !process.isDead else { return }
            _ = network.store.respond(to: request, signed: signed, call: call)
        }
    }

    func answer(_ status: HTTPResponse.Status, _ code: String, to request: S3Request) -> S3Response {
        status.code < 300
            ? S3Response(status: status, headers: ["etag": "\"\(request.body.hashValue)\""], body: ByteBuffer())
            : network.store.error(status, code, request)
    }
}

/// What a planted bug remembers of a process.
final class PlantedMemory {
    var answers: [String: S3Response] = [:]
}

/// A bug that the simulator must find. It changes what a receiver asks of the store, or what it sees of the answers, as
/// if the module had the bug.
struct Plant: Sendable {
    let name: String
    /// What the module would do.
    let what: String
    /// Whether the receiver measures time by a clock that stops with its process.
    var stopsClock = false
    var wrap: @Sendable (_ next: @escaping Exchange, _ world: PlantedWorld) -> Exchange

    /// Changes some requests.
    private static func request(
        _ name: String, _ what: String, _ change: @escaping @Sendable (inout S3Request) -> Void
    ) -> Plant {
        Plant(name: name, what: what) { next, _ in
            { request, signed, limit in
                var request = request
                change(&request)
                return try await next(request, signed, limit)
            }
        }
    }

    /// Changes some answers.
    private static func response(
        _ name: String, _ what: String,
        _ change: @escaping @Sendable (S3Request, S3Response, PlantedWorld) -> S3Response
    ) -> Plant {
        Plant(name: name, what: what) { next, world in
            { request, signed, limit in change(request, try await next(request, signed, limit), world) }
        }
    }

    /// Changes requests and answers.
    private static func exchange(
        _ name: String, _ what: String, stopsClock: Bool = false,
        _ wrap: @escaping @Sendable (_ next: @escaping Exchange, _ world: PlantedWorld) -> Exchange
    ) -> Plant { Plant(name: name, what: what, stopsClock: stopsClock, wrap: wrap) }

    static let all: [Plant] = conditions + orders + sweeps + answers

    // MARK: - Conditions

    private static let conditions: [Plant] = [
        .request("no-condition-on-key", "The commit under a key has no If-None-Match.") {
            if $0.creates("keys/") { $0.removeCondition() }
        },
        .request("no-condition-on-record", "A committed record is listed without If-None-Match.") {
            if $0.creates("records/") { $0.removeCondition() }
        },
        .request("no-condition-on-chunk", "A chunk is written without If-None-Match.") {
            if $0.creates("unfinished/"), $0.key.contains("/chunks/") { $0.removeCondition() }
        },
        .exchange("retry-under-new-name", "A commit under a key is repeated in the next generation.") { next, _ in
            { request, signed, limit in
                var request = request
                if request.creates("keys/"), request.body.readableBytes > 0 {
                    do {
                        return try await next(request, signed, .seconds(5))
                    } catch is S3Error {
                        let number = Int(request.key.suffix(8)) ?? 0
                        request.key = String(request.key.dropLast(8)) + String("0000000\(number + 1)".suffix(8))
                    }
                }
                return try await next(request, signed, limit)
            }
        },
        .exchange(
            "stopped-clock", "The time that an upload takes is measured while the process runs.", stopsClock: true
        ) { next, _ in next },
        .exchange("fresh-signature", "A commit is signed when it is sent, and not when the time was checked.") {
            next, world in
            { request, signed, limit in
                let isCommit = request.creates("keys/") || request.creates("records/")
                return try await next(request, isCommit ? world.network.store.date : signed, limit)
            }
        },
    ]

    // MARK: - Orders

    private static let orders: [Plant] = [
        .exchange("listed-before-commit", "A record is listed before its key has it.") { next, _ in
            { request, signed, limit in
                if request.creates("keys/"),
                    let id = request.headers.first(where: { $0.name == "x-amz-meta-id" })?.value
                {
                    var listing = request
                    listing.key = "records/" + UploadID.inverted(id)
                    let digest = String(request.key.dropFirst("keys/".count).prefix { $0 != "/" })
                    listing.headers = [
                        ("x-amz-meta-key", digest), ("x-amz-meta-generation", "\(Int(request.key.suffix(8)) ?? 0)"),
                    ]
                    _ = try await next(listing, signed, limit)
                }
                return try await next(request, signed, limit)
            }
        },
        .exchange("commit-before-files", "A commit does not wait for its files.") { next, world in
            { request, signed, limit in
                if request.writes("files/") {
                    world.carryOutLater(request, signed: signed, 0.001...2)
                    return world.answer(200, "", to: request)
                }
                return try await next(request, signed, limit)
            }
        },
        .exchange("offset-before-chunk", "An offset counts bytes before they are stored.") { next, world in
            { request, signed, limit in
                guard request.creates("unfinished/"), request.key.contains("/chunks/") else {
                    return try await next(request, signed, limit)
                }
                world.carryOutLater(request, signed: signed, 0.001...5)
                return world.answer(200, "", to: request)
            }
        },
        .exchange("chunks-removed-before-end", "Chunks are removed before the response is stored.") { next, world in
            { request, signed, limit in
                if request.method == .PUT, request.key.hasSuffix("/end") {
                    let folder = String(request.key.dropLast("end".count)) + "chunks/"
                    for key in world.network.store.keys where key.hasPrefix(folder) {
                        _ = try await next(S3Request(method: .DELETE, key: key), signed, limit)
                    }
                }
                return try await next(request, signed, limit)
            }
        },
        .exchange("end-read-before-chunks", "The end is read before the chunks are listed.") { next, world in
            { request, signed, limit in
                let isListing = request.query.contains { $0.name == "prefix" && $0.value.hasPrefix("unfinished/") }
                let ends = world.process.memory
                if isListing, let folder = request.query.first(where: { $0.name == "prefix" })?.value,
                    folder.hasSuffix("/"), folder.split(separator: "/").count == 2
                {
                    ends.answers[folder + "end"] = try await next(
                        S3Request(method: .HEAD, key: folder + "end"), signed, limit)
                } else if request.method == .HEAD, let seen = ends.answers.removeValue(forKey: request.key) {
                    return seen
                }
                return try await next(request, signed, limit)
            }
        },
        .exchange("key-freed-before-mark", "A deletion frees the key before the record is gone.") { next, _ in
            { request, signed, limit in
                if request.writes("records/"), request.body.readableBytes == 0,
                    let key = request.headers.first(where: { $0.name == "x-amz-meta-key" })?.value,
                    let generation = request.headers.first(where: { $0.name == "x-amz-meta-generation" })?.value
                {
                    let name = "keys/\(key)/" + String("0000000\(generation)".suffix(8))
                    _ = try await next(S3Request(method: .PUT, key: name), signed, limit)
                }
                return try await next(request, signed, limit)
            }
        },
        .request("no-mark", "A deletion removes the record, and leaves no mark.") { request in
            if request.writes("records/"), request.body.readableBytes == 0 { request.method = .DELETE }
        },
        .request("key-used-again", "A deletion removes the object of the key.") { request in
            if request.writes("keys/"), request.body.readableBytes == 0 { request.method = .DELETE }
        },
        .exchange("files-removed-after-failed-commit", "An upload whose commit failed removes its files.") {
            next, world in
            { request, signed, limit in
                do {
                    return try await next(request, signed, limit)
                } catch let error as S3Error where request.creates("keys/") || request.creates("records/") {
                    if let record = try? UploadRecord(json: Data(request.body.readableBytesView)) {
                        for key in world.network.store.keys where key.hasPrefix("files/\(record.id.randomText)/") {
                            _ = try? await next(S3Request(method: .DELETE, key: key), signed, limit)
                        }
                    }
                    throw error
                }
            }
        },
    ]

    // MARK: - Sweeps

    private static let sweeps: [Plant] = [
        .response("sweep-without-margin", "The sweep removes files however young they are.") { request, response, _ in
            request.lists("files/") ? response.aged() : response
        },
        .response("sweep-parts-without-margin", "The sweep aborts multipart uploads however young they are.") {
            request, response, _ in
            request.query.contains { $0.name == "uploads" } ? response.aged() : response
        },
        .response("sweep-marks-without-margin", "The sweep removes the marks of deleted records at once.") {
            request, response, _ in
            request.lists("records/") ? response.aged() : response
        },
        .response("sweep-ignores-keys", "The sweep does not look for commits that are not listed.") {
            request, response, _ in
            guard request.method == .HEAD, request.key.hasPrefix("files/") else { return response }
            var headers = response.headers
            headers.remove(name: "x-amz-meta-key")
            return S3Response(status: response.status, headers: headers, body: response.body)
        },
        .response("expiry-by-wrong-clock", "The sweep reads the time of a store's answer as half a day later.") {
            request, response, world in
            guard request.lists("unfinished/") else { return response }
            var headers = response.headers
            let text = SimulatedStore.field(world.network.store.date + 12 * 3600)
            headers.replaceOrAdd(name: "date", value: text)
            return S3Response(status: response.status, headers: headers, body: response.body)
        },
    ]

    // MARK: - Answers

    private static let answers: [Plant] = [
        .response("error-in-200-ignored", "An error in a 200 is taken for success.") { request, response, _ in
            guard response.status == 200, request.method == .POST, String(buffer: response.body).contains("<Error>")
            else { return response }
            return S3Response(status: 200, headers: response.headers, body: ByteBuffer(string: "<Result/>"))
        },
        .response("412-on-key-is-success", "A 412 to a commit under a key is taken for success.") {
            request, response, _ in
            request.creates("keys/") && response.status == 412 ? response.succeeding() : response
        },
        .response("412-on-chunk-is-success", "A 412 to a chunk is taken for success.") { request, response, _ in
            request.creates("unfinished/") && request.key.contains("/chunks/") && response.status == 412
                ? response.succeeding() : response
        },
        .response("412-on-own-chunk-is-refusal", "A request does not know its own chunk again.") {
            request, response, _ in
            guard request.method == .HEAD, request.key.contains("/chunks/") else { return response }
            var headers = response.headers
            headers.remove(name: "x-amz-meta-append")
            return S3Response(status: response.status, headers: headers, body: response.body)
        },
        .response("409-on-key-is-success", "A 409 to a commit is taken for success.") { request, response, _ in
            request.creates("keys/") && response.status == 409 ? response.succeeding() : response
        },
        .response("503-on-file-is-success", "A 503 to a file is taken for success.") { request, response, _ in
            request.writes("files/") && response.status == 503 && request.query.isEmpty
                ? response.succeeding() : response
        },
        .response("one-page", "Only the first page of a listing is read.") { request, response, _ in
            guard request.query.contains(where: { $0.name == "list-type" }),
                request.lists("unfinished/") || request.lists("files/") || request.lists("records/")
            else { return response }
            let text = String(buffer: response.body).replacing("<IsTruncated>true", with: "<IsTruncated>false")
            // The check at the start looks at this too.
            return S3Response(status: response.status, headers: response.headers, body: ByteBuffer(string: text))
        },
        .response("unavailable-is-missing", "A HEAD that is answered with a 503 is taken for a 404.") {
            request, response, _ in
            guard request.method == .HEAD, response.status == 503, request.key.hasSuffix("/end") else {
                return response
            }
            return S3Response(status: 404, headers: response.headers, body: ByteBuffer())
        },
        .request("last-part-forgotten", "The last part of a large file is not part of it.") { request in
            guard request.method == .POST, request.query.contains(where: { $0.name == "uploadId" }) else { return }
            let text = String(buffer: request.body)
            let parts = text.components(separatedBy: "<Part>")
            if parts.count > 2 {
                request.body = ByteBuffer(
                    string: parts.dropLast().joined(separator: "<Part>") + "</CompleteMultipartUpload>")
            }
        },
    ]
}

extension S3Request {
    fileprivate func writes(_ folder: String) -> Bool { method == .PUT && key.hasPrefix(folder) }
    fileprivate func creates(_ folder: String) -> Bool {
        writes(folder) && headers.contains { $0.name == "if-none-match" }
    }
    fileprivate func lists(_ folder: String) -> Bool {
        query.contains { $0.name == "prefix" && $0.value.hasPrefix(folder) }
    }
    fileprivate mutating func removeCondition() { headers.removeAll { $0.name == "if-none-match" } }
}

extension S3Response {
    fileprivate func succeeding() -> S3Response { S3Response(status: 200, headers: headers, body: ByteBuffer()) }

    /// The listing with all times long ago.
    fileprivate func aged() -> S3Response {
        let text = String(buffer: body).replacing(#/(<LastModified>|<Initiated>)[^<]*/#) { match in
            String(match.output.1) + "2020-01-01T00:00:00.000Z"
        }
        return S3Response(status: status, headers: headers, body: ByteBuffer(string: text))
    }
}
