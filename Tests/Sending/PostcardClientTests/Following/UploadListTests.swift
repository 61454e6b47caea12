import Foundation
import HTTPTypes
import Observation
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Synchronization
import Testing

@MainActor @Suite(.timeLimit(.minutes(10))) struct UploadListTests {
    private static func form(_ number: Int, size: Int = 0) -> MultipartForm {
        var form = MultipartForm()
        form.append("\(number)", named: "number")
        form.append(Data(repeating: 7, count: size), named: "image", filename: "\(number).jpg")
        return form
    }

    private static func name(_ state: UploadItem.State) -> String {
        switch state {
        case .waiting: "waiting"
        case .preparing: "preparing"
        case .waitingForNetwork: "waiting for network"
        case .sending: "sending"
        case .awaitingResponse: "awaiting response"
        case .retrying: "retrying"
        case .done: "done"
        case .failed: "failed"
        case .cancelled: "cancelled"
        }
    }

    /// Every state and fraction that an observer of the item sees.
    @MainActor private final class Observer {
        var states: [String] = []
        var fractions: [Double] = []

        func observe(_ item: UploadItem) {
            let (state, fraction) = withObservationTracking {
                (UploadListTests.name(item.state), item.fraction)
            } onChange: { [weak self, weak item] in
                Task { @MainActor in
                    if let item { self?.observe(item) }
                }
            }
            if states.last != state { states.append(state) }
            if let fraction { fractions.append(fraction) }
        }
    }

    @Test(arguments: Carrier.allCases)
    func `an observer sees an item from its waiting to its end`(carrier: Carrier) async throws {
        try await RawServer.run { connection in
            while try await connection.readRequest() != nil { try await connection.respond("201 Created", body: "7") }
        } while: { server in
            try await Self.followOne(carrier, to: server.url)
        }
    }

    private static func followOne(_ carrier: Carrier, to url: URL) async throws {
        let client = UploadClient(transport: carrier.transport())
        let item = UploadItem(form(0, size: 2_000_000), to: url, client: client)
        #expect(item.name == "0.jpg")
        #expect(name(item.state) == "waiting")
        #expect(item.fraction == 0)
        let observer = Observer()
        observer.observe(item)
        item.start()
        await item.finish()
        // The last change is seen a turn of the main actor after it.
        try await eventually { observer.states.last == "done" }
        #expect(observer.states.first == "waiting")
        #expect(zip(observer.fractions, observer.fractions.dropFirst()).allSatisfy { $0 <= $1 })
        #expect(observer.fractions.last == 1)
        #expect(item.isEnded)
        #expect(item.error == nil)
        #expect(item.progress?.parts.allSatisfy { $0.fraction == 1 } == true)
        guard case .done(let response) = item.state else {
            Issue.record("It is \(item.state).")
            return
        }
        #expect(response.text == "7")
        item.retry()
        item.cancel()
        #expect(name(item.state) == "done")
    }

    @Test(arguments: Carrier.allCases)
    func `a failed item says why, and its retry carries the same key`(carrier: Carrier) async throws {
        let isSecond = Mutex(false)
        try await RawServer.run { connection in
            while try await connection.readRequest() != nil {
                let status = isSecond.withLock { isSecond in
                    defer { isSecond = true }
                    return isSecond ? "201 Created" : "503 Service Unavailable"
                }
                try await connection.respond(status)
            }
        } while: { server in
            try await Self.retryOne(carrier, server)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `an item of events carries a key of its own, the same with every retry`(carrier: Carrier) async throws {
        try await RawServer.run { connection in
            while try await connection.readRequest() != nil { try await connection.respond("503 Service Unavailable") }
        } while: { server in
            await Self.tryTwoTwice(carrier, server)
            let keys = server.requests.heads.compactMap { $0["Idempotency-Key"] }
            #expect(keys.count == 4)
            #expect(Set(keys).count == 2)
            #expect(keys.prefix(2).first == keys.prefix(2).last)
        }
    }

    private static func tryTwoTwice(_ carrier: Carrier, _ server: RawServer) async {
        let events = UploadClient(transport: carrier.transport()).events(of: form(0), to: server.url)
        for name in ["first", "second"] {
            let item = UploadItem(events, name: name)
            item.start()
            await item.finish()
            item.retry()
            await item.finish()
        }
    }

    private static func retryOne(_ carrier: Carrier, _ server: RawServer) async throws {
        let list = UploadList(client: UploadClient(transport: carrier.transport()))
        let item = list.add(form(0), to: server.url, name: "Choco")
        await list.finish()
        #expect(item.name == "Choco")
        #expect(name(item.state) == "failed" && list.fraction == 0)
        #expect((item.error as? UploadError)?.response?.status.code == 503)
        list.retryAll()
        await list.finish()
        #expect(name(item.state) == "done")
        #expect(list.fraction == 1)
        let keys = server.requests.heads.map { $0["Idempotency-Key"] }
        #expect(keys.count == 2)
        #expect(keys[0] != nil && keys[0] == keys[1])
    }

    @Test(arguments: Carrier.allCases)
    func `what the server has accepted is not sent again, though it failed then`(carrier: Carrier) async throws {
        try await RawServer.run { connection in
            while try await connection.readRequest() != nil { try await connection.respond("201 Created") }
        } while: { server in
            var client = UploadClient(transport: carrier.transport())
            client.responses.verification = UploadVerification { parts, _ in parts }
            await Self.retryAccepted(client, to: server.url)
            #expect(server.requests.heads.count == 1)
        }
    }

    private static func retryAccepted(_ client: UploadClient, to url: URL) async {
        let list = UploadList(client: client)
        let item = list.add(form(0), to: url)
        await list.finish()
        #expect((item.error as? UploadError)?.code == .altered)
        item.retry()
        list.retryAll()
        await list.finish()
        #expect(name(item.state) == "failed")
    }

    @Test(arguments: Carrier.allCases)
    func `a list begins as many as there is room for, and the next when one ends`(carrier: Carrier) async throws {
        try await RawServer.run { connection in
            while try await connection.readRequest() != nil { try await connection.respond("201 Created") }
        } while: { server in
            try await Self.fillAndFinish(carrier, to: server.url)
        }
    }

    private static func fillAndFinish(_ carrier: Carrier, to url: URL) async throws {
        let list = UploadList(client: UploadClient(transport: carrier.transport()), maximumConcurrentUploads: 2)
        for number in 0..<6 { list.add(form(number, size: 1_000), to: url) }
        #expect(
            list.items.map { name($0.state) } == ["preparing", "preparing"] + Array(repeating: "waiting", count: 4))
        await list.finish()
        #expect(list.items.allSatisfy { name($0.state) == "done" })
        list.clear()
        #expect(list.items.isEmpty)
        #expect(list.fraction == 0)
    }

    @Test(arguments: Carrier.allCases)
    func `cancelling all ends what is under way and begins nothing more`(carrier: Carrier) async throws {
        let arrived = Gate()
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            arrived.open()
            _ = try await connection.readToEnd()
        } while: { server in
            await Self.cancelAll(carrier, server, arrived)
        }
    }

    private static func cancelAll(_ carrier: Carrier, _ server: RawServer, _ arrived: Gate) async {
        let list = UploadList(client: UploadClient(transport: carrier.transport()), maximumConcurrentUploads: 1)
        for number in 0..<3 { list.add(form(number), to: server.url) }
        await arrived.wait()
        list.cancelAll()
        await list.finish()
        #expect(list.items.map { name($0.state) } == ["cancelled", "cancelled", "cancelled"])
        #expect(server.requests.heads.count == 1)
    }

    @Test(arguments: Carrier.allCases)
    func `a deallocated list closes its connections`(carrier: Carrier) async throws {
        let arrived = Gate()
        let closed = Gate()
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            arrived.open()
            _ = try? await connection.readToEnd()
            closed.open()
        } while: { server in
            await Self.letGo(carrier, to: server.url, arrived)
            await closed.wait()
        }
    }

    private static func letGo(_ carrier: Carrier, to url: URL, _ arrived: Gate) async {
        let list = UploadList(client: UploadClient(transport: carrier.transport()))
        list.add(form(0), to: url)
        await arrived.wait()
        #expect(list.items.count == 1)
    }

    @Test func `a preview shows its state, and sends nothing`() async {
        let item = UploadItem.preview(.sending, name: "cat.jpg", progress: .preview(0.25))
        #expect(item.name == "cat.jpg" && item.fraction == 0.25 && item.error == nil)
        #expect(item.bytesPerSecond == 500_000)
        let failed = UploadItem.preview(.failed(URLError(.timedOut)))
        #expect(failed.isEnded && (failed.error as? URLError)?.code == .timedOut)
        failed.retry()
        await failed.finish()
        #expect(Self.name(failed.state) == "cancelled")
    }
}
