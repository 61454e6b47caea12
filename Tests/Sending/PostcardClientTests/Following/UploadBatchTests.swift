import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(10))) struct UploadBatchTests {
    private static func form(_ number: Int) -> MultipartForm {
        var form = MultipartForm()
        form.append("\(number)", named: "number")
        return form
    }

    /// The number that a form holds.
    private static func number(in request: RawRequest) -> Int? {
        String(decoding: request.body, as: UTF8.self).components(separatedBy: "\r\n").dropFirst(3).first
            .flatMap { Int($0) }
    }

    /// Counts how many are at something at a time.
    private final class Crowd: Sendable {
        private let state = Mutex((now: 0, most: 0, inAll: 0))

        var most: Int { state.withLock { $0.most } }
        var now: Int { state.withLock { $0.now } }
        var inAll: Int { state.withLock { $0.inAll } }

        func enter() {
            state.withLock { state in
                state.now += 1
                state.inAll += 1
                state.most = max(state.most, state.now)
            }
        }

        func leave() {
            state.withLock { $0.now -= 1 }
        }
    }

    private struct AddNumber: UploadEndpoint {
        typealias Response = Int

        let number: Int
        let baseURL: URL

        var path: String { "numbers/\(number)" }

        func form() -> MultipartForm { UploadBatchTests.form(number) }
    }

    @Test(arguments: Carrier.allCases)
    func `endpoints are sent each to its own place, and read each its own response`(carrier: Carrier) async throws {
        try await RawServer.run { connection in
            while let request = try await connection.readRequest() {
                try await connection.respond("201 Created", body: "\(Self.number(in: request) ?? -1)")
            }
        } while: { server in
            let endpoints = (0..<5).map { AddNumber(number: $0, baseURL: server.url) }
            let client = UploadClient(transport: carrier.transport())
            var numbers: Set<Int> = []
            for await outcome in client.uploadEach(endpoints, maximumConcurrentUploads: 2) {
                let endpoint = endpoints[outcome.index]
                let number = try? endpoint.decode(outcome.result.get())
                #expect(number == endpoint.number)
                numbers.insert(endpoint.number)
            }
            #expect(numbers == Set(0..<5))
        }
    }

    @Test(arguments: Carrier.allCases)
    func `every form arrives once, a few at a time, and each outcome names its own`(carrier: Carrier) async throws {
        let crowd = Crowd()
        let outcomes = try await RawServer.run { connection in
            while let request = try await connection.readRequest() {
                crowd.enter()
                await Task.yield()
                crowd.leave()
                try await connection.respond("201 Created", body: "\(Self.number(in: request) ?? -1)")
            }
        } while: { server in
            let client = UploadClient(transport: carrier.transport())
            var outcomes: [UploadOutcome] = []
            for await outcome in client.uploadEach((0..<20).map(Self.form), to: server.url, maximumConcurrentUploads: 3)
            {
                outcomes.append(outcome)
            }
            #expect(server.requests.whole.compactMap(Self.number).sorted() == Array(0..<20))
            return outcomes
        }
        #expect(outcomes.map(\.index).sorted() == Array(0..<20))
        for outcome in outcomes { #expect(try outcome.result.get().text == "\(outcome.index)") }
        #expect((1...3).contains(crowd.most))
    }

    @Test(arguments: Carrier.allCases)
    func `outcomes come in the order in which they end`(carrier: Carrier) async throws {
        let gate = Gate()
        try await RawServer.run { connection in
            while let request = try await connection.readRequest() {
                if Self.number(in: request) == 0 { await gate.wait() }
                try await connection.respond("201 Created")
            }
        } while: { server in
            let client = UploadClient(transport: carrier.transport())
            var indices: [Int] = []
            for await outcome in client.uploadEach((0..<4).map(Self.form), to: server.url, maximumConcurrentUploads: 2)
            {
                indices.append(outcome.index)
                if indices.count == 3 { gate.open() }
            }
            #expect(indices == [1, 2, 3, 0])
        }
    }

    @Test func `forms are made when there is room for them`() async throws {
        let crowd = Crowd()
        try await RawServer.run { connection in
            while try await connection.readRequest() != nil { try await connection.respond("201 Created") }
        } while: { server in
            // Without end: nothing may go through it to the last.
            let batch = UploadClient().uploadEach(Unending(), to: server.url, maximumConcurrentUploads: 2) { number in
                crowd.enter()
                return Self.form(number)
            }
            var count = 0
            for await _ in batch {
                count += 1
                // Those taken, and at most as many more as may be under way.
                #expect(crowd.inAll <= count + 2 + 2)
                if count == 10 { break }
            }
        }
    }

    /// All numbers.
    private struct Unending: Sequence, Sendable {
        func makeIterator() -> some IteratorProtocol<Int> {
            sequence(first: 0) { $0 + 1 }.makeIterator()
        }
    }

    @Test(arguments: Carrier.allCases)
    func `one failure does not end the others, unless asked`(carrier: Carrier) async throws {
        for stops in [false, true] {
            try await RawServer.run { connection in
                while let request = try await connection.readRequest() {
                    let number = Self.number(in: request)
                    try await connection.respond(number == 2 ? "422 Unprocessable Content" : "201 Created")
                }
            } while: { server in
                let client = UploadClient(transport: carrier.transport())
                let batch = client.uploadEach(
                    (0..<6).map(Self.form), to: server.url, maximumConcurrentUploads: 1, stopsAtFirstFailure: stops)
                var failed: [Int] = []
                var succeeded: [Int] = []
                for await outcome in batch {
                    switch outcome.result {
                    case .success: succeeded.append(outcome.index)
                    case .failure(let error):
                        #expect((error as? UploadError)?.code == .refused)
                        failed.append(outcome.index)
                    }
                }
                #expect(failed == [2])
                #expect(succeeded == (stops ? [0, 1] : [0, 1, 3, 4, 5]))
                #expect(batch.progress.failed == 1)
                #expect(batch.progress.succeeded == succeeded.count)
            }
        }
    }

    @Test func `as many uploads as the caller asks for are sent at a time over AsyncHTTPClient`() async throws {
        let all = Gate()
        let arrived = Mutex(0)
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            let count = arrived.withLock { count in
                count += 1
                return count
            }
            if count == 20 { all.open() }
            await all.wait()
            try await connection.respond("201 Created")
        } while: { server in
            let client = UploadClient(transport: Carrier.asyncHTTP.transport())
            for await outcome in client.uploadEach(
                (0..<20).map(Self.form), to: server.url, maximumConcurrentUploads: 20)
            {
                #expect(throws: Never.self) { try outcome.result.get() }
            }
        }
    }

    @Test func `a form that cannot be made is the outcome of its item alone`() async throws {
        struct NoPhoto: Error {}
        try await RawServer.run { connection in
            while try await connection.readRequest() != nil { try await connection.respond("201 Created") }
        } while: { server in
            let batch = UploadClient().uploadEach(0..<3, to: server.url) { number in
                if number == 1 { throw NoPhoto() }
                return Self.form(number)
            }
            for await outcome in batch {
                switch outcome.result {
                case .success(let response): #expect(response.status == .created && outcome.index != 1)
                case .failure(let error): #expect(error is NoPhoto && outcome.index == 1)
                }
            }
        }
    }

    @Test(arguments: Carrier.allCases)
    func `one upload is cancelled alone, under way or before it began`(carrier: Carrier) async throws {
        let arrived = Gate()
        try await RawServer.run { connection in
            while let request = try await connection.readRequest() {
                if Self.number(in: request) == 0 {
                    arrived.open()
                    // The client closes it, and nothing else ends this.
                    _ = try await connection.readToEnd()
                    return
                }
                try await connection.respond("201 Created")
            }
        } while: { server in
            let client = UploadClient(transport: carrier.transport())
            let batch = client.uploadEach((0..<4).map(Self.form), to: server.url, maximumConcurrentUploads: 1)
            batch.cancel(2)
            let cancelling = Task {
                await arrived.wait()
                batch.cancel(0)
            }
            var cancelled: [Int] = []
            for await outcome in batch {
                if case .failure(let error) = outcome.result {
                    #expect(error is CancellationError)
                    cancelled.append(outcome.index)
                }
            }
            await cancelling.value
            #expect(cancelled == [0, 2])
            #expect(server.requests.whole.compactMap(Self.number) == [0, 1, 3])
        }
    }

    /// How a batch is ended before its end.
    enum Ending: CaseIterable {
        case cancel
        case leave
        case cancelTask
    }

    @Test(arguments: Carrier.allCases, Ending.allCases)
    func `nothing is left of a batch that is ended`(carrier: Carrier, ending: Ending) async throws {
        let underWay = Gate()
        try await RawServer.run { connection in
            while let request = try await connection.readRequest() {
                if Self.number(in: request) == 0 {
                    try await connection.respond("201 Created")
                } else {
                    underWay.open()
                    _ = try await connection.readToEnd()
                    return
                }
            }
        } while: { server in
            let client = UploadClient(transport: carrier.transport())
            let batch = client.uploadEach((0..<9).map(Self.form), to: server.url, maximumConcurrentUploads: 2)
            let reading = Task {
                var left = 0
                for await outcome in batch {
                    if outcome.index == 0 {
                        await underWay.wait()
                        if ending == .cancel { batch.cancel() }
                        if ending == .leave { break }
                        if ending == .cancelTask { withUnsafeCurrentTask { $0?.cancel() } }
                    } else {
                        #expect(throws: CancellationError.self) { try outcome.result.get() }
                        left += 1
                    }
                }
                return left
            }
            let left = await reading.value
            #expect(ending == .leave ? left == 0 : (1...2).contains(left))
            // Ends only once the client has closed every connection of an upload that was under way: the server's
            // scripts read until then.
        }
    }

    @Test(arguments: Carrier.allCases)
    func `progress is reported in order, item by item and in total, and ends at 1`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let photos = try (0..<5).map { try folder.file("\($0).jpg", size: $0 * 150_000) }
        let steps = Mutex<[UploadBatchProgress]>([])
        let total = try await RawServer.run { connection in
            while try await connection.readRequest() != nil { try await connection.respond("201 Created") }
        } while: { server in
            let client = UploadClient(transport: carrier.transport())
            let batch = client.uploadEach(photos, to: server.url, maximumConcurrentUploads: 2) { step in
                steps.withLock { $0.append(step) }
            } form: { photo in
                var form = MultipartForm()
                form.append(fileAt: photo, named: "image")
                return form
            }
            for await outcome in batch { _ = try outcome.result.get() }
            return server.requests.whole.reduce(0) { $0 + $1.body.count }
        }
        let told = steps.withLock { $0 }
        let bytes = told.map(\.bytesSent)
        #expect(zip(bytes, bytes.dropFirst()).allSatisfy { $0 <= $1 })
        let fractions = told.compactMap(\.fraction)
        #expect(fractions.count == told.count)
        #expect(zip(fractions, fractions.dropFirst()).allSatisfy { $0 <= $1 })
        #expect(fractions.last == 1)
        #expect(bytes.last == Int64(total))
        #expect(told.allSatisfy { $0.items.count <= 2 && $0.count == 5 })
        #expect(told.last?.succeeded == 5)
        #expect(told.contains { $0.items.values.contains { $0.fraction == 1 } })
    }

    @Test func `a batch of nothing ends at once`() async throws {
        let url = try #require(URL(string: "http://127.0.0.1:9/"))
        let batch = UploadClient().uploadEach([MultipartForm](), to: url)
        for await _ in batch { Issue.record("there is nothing to upload") }
        #expect(batch.progress.fraction == 1)
        let cancelled = UploadClient().uploadEach([MultipartForm()], to: url)
        cancelled.cancel()
        for await _ in cancelled { Issue.record("it was cancelled before it began") }
    }
}
