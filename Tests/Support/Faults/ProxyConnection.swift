import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix

/// One connection of a client to the proxy, with a connection to the server for each of its requests.
struct ProxyConnection {
    private typealias Client = NIOAsyncChannel<HTTPServerRequestPart, HTTPServerResponsePart>
    typealias Inbound = NIOAsyncChannelInboundStream<HTTPServerRequestPart>.AsyncIterator
    typealias Outbound = NIOAsyncChannelOutboundWriter<HTTPServerResponsePart>

    private let proxy: FaultProxy
    private let requests: ProxyRequests

    init(_ proxy: FaultProxy, _ requests: ProxyRequests) {
        self.proxy = proxy
        self.requests = requests
    }

    /// What becomes of a connection after a request.
    private enum Outcome {
        case next
        case close
    }

    func serve(_ channel: any Channel) async throws {
        let connection = try await channel.eventLoop.submit {
            try channel.pipeline.syncOperations.configureHTTPServerPipeline(
                withPipeliningAssistance: false, withErrorHandling: false)
            return try Client(
                wrappingChannelSynchronously: channel,
                configuration: Client.Configuration(
                    backPressureStrategy: .init(lowWatermark: 1, highWatermark: 1),
                    isOutboundHalfClosureEnabled: true))
        }.get()
        try await connection.executeThenClose { inbound, outbound in
            try await ConnectionHold.end(on: channel)
            var inbound = inbound.makeAsyncIterator()
            let wire = WireCount(channel, requests)
            do {
                while case .next = try await serveRequest(&inbound, outbound, on: channel) { await wire.update() }
            } catch {
                await wire.update()
                throw error
            }
            await wire.update()
        }
    }

    private func serveRequest(
        _ inbound: inout Inbound, _ outbound: Outbound, on channel: any Channel
    ) async throws -> Outcome {
        guard case .head(let head)? = try await inbound.next(isolation: #isolation) else { return .close }
        let fault = proxy.plan(requests.add(head))
        if head.headers.contains(name: "Expect"), fault.byte > 0 {
            try await outbound.write(.head(HTTPResponseHead(version: .http1_1, status: .continue)))
        }
        let outcome =
            if fault.reachesServer {
                try await ServerConnection.open(to: proxy.server) { server in
                    try await relay(head, &inbound, outbound, server, fault, on: channel)
                }
            } else {
                try await respond(head, &inbound, outbound, fault)
            }
        // As RFC 9112 §9.6 has it.
        return head.isKeepAlive ? outcome : .close
    }

    // MARK: - Requests that the server sees

    private func relay(
        _ head: HTTPRequestHead, _ inbound: inout Inbound, _ outbound: Outbound, _ server: ServerConnection,
        _ fault: Fault, on channel: any Channel
    ) async throws -> Outcome {
        var server = server
        try await server.begin(head)
        var pace = Pace(fault)
        var left = fault.byte
        while left > 0, let part = try await inbound.next(isolation: #isolation) {
            switch part {
            case .head: return .close
            case .body(var bytes):
                requests.countBody(bytes.readableBytes)
                let passing = bytes.readSlice(length: min(bytes.readableBytes, left)) ?? ByteBuffer()
                left -= passing.readableBytes
                try await pace.pass(passing) { try await server.write($0) }
            case .end:
                return try await relayResponse(to: head, from: &server, to: outbound, fault, &pace)
            }
        }
        return try await interrupt(&inbound, outbound, server, fault, on: channel)
    }

    private func relayResponse(
        to request: HTTPRequestHead, from server: inout ServerConnection, to outbound: Outbound, _ fault: Fault,
        _ pace: inout Pace
    ) async throws -> Outcome {
        // A server that has answered by the head alone may have closed.
        try? await server.end()
        while let part = try await server.nextPart() {
            if case .responseLost = fault {
                if case .end = part { return .close }
                continue
            }
            switch part {
            case .head(var head):
                // The connection to the server is this request's alone; the client's stays.
                head.headers.remove(name: "Connection")
                if !request.isKeepAlive { head.headers.add(name: "Connection", value: "close") }
                try await outbound.write(.head(head))
            case .body(let bytes):
                try await pace.pass(bytes) { try await outbound.write(.body(.byteBuffer($0))) }
            case .end(let trailers):
                try await outbound.write(.end(trailers))
                return .next
            }
        }
        return .close
    }

    /// Does to a connection what it is there for, in the middle of a body.
    private func interrupt(
        _ inbound: inout Inbound, _ outbound: Outbound, _ server: ServerConnection, _ fault: Fault,
        on channel: any Channel
    ) async throws -> Outcome {
        switch fault {
        case .reset:
            // Closed with nothing to linger for, a connection is reset.
            try await (channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0)).get()
        case .stall:
            await proxy.end.wait()
        case .halfClose:
            outbound.finish()
            while try await inbound.next(isolation: #isolation) != nil {}
        case .none, .slow, .responseLost, .response, .earlyResponse:
            break
        }
        return .close
    }

    // MARK: - Requests that it does not see

    private func respond(
        _ head: HTTPRequestHead, _ inbound: inout Inbound, _ outbound: Outbound, _ fault: Fault
    ) async throws -> Outcome {
        var left = fault.byte
        reading: while left > 0, let part = try await inbound.next(isolation: #isolation) {
            switch part {
            case .head: return .close
            case .body(let bytes): left -= min(left, bytes.readableBytes)
            case .end: break reading
            }
        }
        switch fault {
        case .earlyResponse(let response, _, let closing):
            try await write(response, to: outbound, closes: true)
            if case .reading = closing {
                outbound.finish()
                while try await inbound.next(isolation: #isolation) != nil {}
            }
            return .close
        case .response(let response):
            try await write(response, to: outbound, closes: !head.isKeepAlive)
            return .next
        case .none, .reset, .stall, .slow, .halfClose, .responseLost:
            return .close
        }
    }

    private func write(_ response: Fault.Response, to outbound: Outbound, closes: Bool) async throws {
        var fields = HTTPHeaders(response.headerFields.sorted { $0.key < $1.key })
        // With a larger length of its own, the body stalls.
        if !fields.contains(name: "Content-Length") {
            fields.add(name: "Content-Length", value: "\(response.body.utf8.count)")
        }
        if closes { fields.add(name: "Connection", value: "close") }
        let status = HTTPResponseStatus(statusCode: response.status)
        try await outbound.write(
            contentsOf: [
                .head(HTTPResponseHead(version: .http1_1, status: status, headers: fields)),
                .body(.byteBuffer(ByteBuffer(string: response.body))), .end(nil),
            ])
    }
}

/// Counts what a client has put on the wire of its connection, by what the kernel has taken of it.
private final class WireCount {
    private let channel: any Channel
    private let requests: ProxyRequests
    private var counted = 0

    init(_ channel: any Channel, _ requests: ProxyRequests) {
        self.channel = channel
        self.requests = requests
    }

    /// Counts what came since the last time; nothing where the client has closed the connection in the meantime.
    func update() async {
        #if os(Linux)
        // The beginning of the kernel's `tcp_info`, up to `tcpi_bytes_received`, which libc's does not have.
        guard let options = channel as? any SocketOptionProvider,
            let info: InlineArray<17, UInt64> = try? await options.unsafeGetSocketOption(
                level: .tcp, name: .tcp_info
            ).get()
        else { return }
        requests.countReceived(Int(info[16]) - counted)
        counted = Int(info[16])
        #endif
    }
}

/// Keeps bytes to a speed.
struct Pace {
    private let bytesPerSecond: Int?
    private let start = ContinuousClock.now
    private var passed = 0

    init(_ fault: Fault) {
        if case .slow(let bytesPerSecond) = fault { self.bytesPerSecond = bytesPerSecond } else { bytesPerSecond = nil }
    }

    /// Hands bytes on, each when its time has come.
    mutating func pass(_ bytes: ByteBuffer, _ write: (ByteBuffer) async throws -> Void) async throws {
        guard let bytesPerSecond else { return try await write(bytes) }
        var bytes = bytes
        while let piece = bytes.readSlice(length: min(max(1, bytesPerSecond / 10), bytes.readableBytes)),
            piece.readableBytes > 0
        {
            passed += piece.readableBytes
            try await Task.sleep(until: start + .seconds(1) * passed / bytesPerSecond, clock: .continuous)
            try await write(piece)
        }
    }
}
