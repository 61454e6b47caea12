import HTTPTypes
import PostcardWire

/// Makes the requests of a check, and keeps facts from their responses.
final class CheckSession {
    let server: ServerAddress
    let settings: CheckSettings
    /// How long to wait after a request that the server may still be receiving.
    private(set) var settlingTime = Duration.zero
    let content: UploadContent
    private(set) var knowledge: ServerKnowledge

    /// The upload resource of the last creation; `nil` if the server named none, or one with another origin.
    private(set) var upload: ServerAddress?
    /// The upload resource of the last creation if its origin differs from that of the checked URL. It receives no
    /// requests, because a server must not decide which other servers the checks change.
    private var foreignUpload: ServerAddress?
    /// The upload resources to delete after the check.
    private var uploads: [ServerAddress] = []
    private var connections: [ConformanceConnection] = []
    private var idle: ConformanceConnection?
    private var evidence: Evidence

    init(
        server: ServerAddress, settings: CheckSettings, content: UploadContent, kind: UploadContent.Kind,
        knowledge: ServerKnowledge
    ) {
        self.server = server
        self.settings = settings
        self.content = content
        self.knowledge = knowledge
        evidence = Evidence(
            contentBytes: content.bytes.count, conventional: knowledge.conventional[kind], limits: knowledge.limits,
            version: settings.version)
    }

    /// The last offset that the server sent.
    var seenOffset: Int64? { evidence.seenOffset }
    /// When to stop waiting for a response if the wait begins now.
    var deadline: ContinuousClock.Instant { .now + longestWait }
    /// How long to wait for a response. The wait is shorter while uploads are deleted after the check.
    private var longestWait: Duration { isEnding ? min(settings.timeout, .seconds(2)) : settings.timeout }
    private var isEnding = false
    /// How long to wait for a 104.
    private var announcementTime: Duration { min(settings.timeout, .seconds(5)) }

    // MARK: - Judging

    /// Makes the requests in order, and judges the responses of requests with expectations.
    func judge(_ steps: [Step]) async throws -> CheckFinding {
        guard steps.contains(where: { $0.pacing.isCut }) else { return try await judgeOnce(steps) }
        return try await repeating { try await $0.judgeOnce(steps) }
    }

    /// Repeats a check that finds a violation, with longer waits between requests, because a busy server may process
    /// requests in another order.
    func repeating(_ find: (CheckSession) async throws -> CheckFinding) async throws -> CheckFinding {
        var finding = CheckFinding(.unchecked, "")
        for time in settings.settlingTimes {
            settlingTime = time
            forgetUpload()
            finding = try await find(self)
            if finding.outcome != .violated { break }
        }
        return finding
    }

    private func judgeOnce(_ steps: [Step]) async throws -> CheckFinding {
        var seen: [String] = []
        for step in steps {
            guard !step.expectations.isEmpty else {
                try await succeed(step)
                continue
            }
            let (judgement, exchange) = try await judgement(of: step)
            switch judgement {
            case .met: seen.append(exchange.summary)
            case .failed(let expected): return CheckFinding(.violated, "\(exchange.summary), not \(expected)")
            case .notApplicable(let reason): throw CheckInterruption.notApplicable(reason)
            case .unchecked(let reason): throw CheckInterruption.unchecked(reason)
            }
        }
        return CheckFinding(.ok, seen.joined(separator: "; "))
    }

    private func judgement(of step: Step) async throws -> (Expectation.Judgement, Exchange) {
        let end = ContinuousClock.now + min(settings.timeout, .seconds(2))
        while true {
            let exchange = try await perform(step)
            let judgement = step.expectations.lazy.map { $0.judge(exchange, self.evidence) }.first { judgement in
                if case .met = judgement { false } else { true }
            }
            evidence.earlier.append(exchange)
            guard let judgement else { return (.met, exchange) }
            guard step.isRepeated, ContinuousClock.now < end else { return (judgement, exchange) }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    /// Makes a request that prepares for others. Throws `CheckInterruption` if the request does not succeed.
    @discardableResult
    func succeed(_ step: Step) async throws -> Exchange {
        let exchange = try await perform(step)
        evidence.earlier.append(exchange)
        if step.isIgnored { return exchange }
        if step.pacing.isCut { return exchange }
        guard let final = exchange.final, final.isSuccess else { throw CheckInterruption.unchecked(exchange.summary) }
        return exchange
    }

    /// The effect of a request as text, to compare with others: its status, and the state of the upload afterwards.
    func signature(of step: Step) async throws -> String {
        let exchange = try await perform(step)
        guard let status = exchange.final?.status else { return exchange.missing }
        if foreignUpload != nil { throw missingUpload }
        guard upload != nil else { return "\(status)" }
        guard let head = try await perform(.head).final else { return "\(status), then no response to HEAD" }
        let fields = [HTTPField.Name.uploadOffset, .uploadComplete, .uploadLength].compactMap { name in
            head.fields[name].map { "\(name): \($0)" }
        }
        return "\(status), then \(head.status) (\(fields.joined(separator: "; ")))"
    }

    /// Directs the next requests to another upload.
    func use(_ other: ServerAddress?) {
        (upload, foreignUpload) = (other, nil)
    }

    /// Forgets the upload, so that the check can create another.
    func forgetUpload() {
        (upload, foreignUpload) = (nil, nil)
        evidence.seenOffset = nil
    }

    /// The reason why a check that needs the upload resource cannot continue.
    var missingUpload: CheckInterruption {
        guard let foreignUpload else { return .unchecked("the server named no upload resource") }
        return .unchecked(
            "the upload resource \(foreignUpload.description.prefix(200)) has another origin than the URL, so nothing "
                + "was sent there")
    }

    // MARK: - Requests

    /// Makes a request, and waits for its final response if one is expected.
    func perform(_ step: Step) async throws -> Exchange {
        try requireInterimResponses(for: step)
        if step.needsInterim, case .paced = step.pacing, let exchange = knowledge.slowAppend { return exchange }
        let (address, request) = try render(step)
        var exchange = Exchange(method: step.method)
        do throws(ConnectionFailure) {
            // A server may close an idle connection at any time, so the request is retried.
            let isReused = idle?.isOpen == true && idle?.address.isOnServer(of: address) == true
            do {
                try await deliver(request, of: step, to: address, &exchange)
            } catch  where isReused && exchange.interim.isEmpty && step.pacing.isWhole {
                try await deliver(request, of: step, to: address, &exchange)
            }
        } catch {
            exchange.missing = error.description
        }
        try learn(from: exchange, of: step)
        return exchange
    }

    /// Checks that the server may send the interim responses that a step needs.
    private func requireInterimResponses(for step: Step) throws {
        guard step.needsInterim else { return }
        if step.method == "POST", case .never = knowledge.announcement {
            throw CheckInterruption.notApplicable("the server sends no 104 with the upload resource")
        }
        if case .paced = step.pacing, case .never = knowledge.progress {
            throw CheckInterruption.notApplicable("the server sends no 104 while it receives")
        }
    }

    private func deliver(
        _ request: RenderedRequest, of step: Step, to address: ServerAddress, _ exchange: inout Exchange
    ) async throws(ConnectionFailure) {
        let connection = try await connection(to: address)
        connection.beginRequest(step.method)
        var wait = longestWait
        switch step.pacing {
        case .whole:
            connection.send(request.head + request.beginning + request.rest)
        case .headOnly:
            // A server that does not refuse the request by its head waits for the content without responding.
            wait = min(wait, .seconds(3))
            connection.send(request.head)
        case .paced:
            connection.send(request.head)
            try await pace(request.beginning + request.rest, on: connection, &exchange)
        case .paused, .quiet, .cut:
            connection.send(request.head + request.beginning)
            let start = ContinuousClock.now
            var pause = announcementTime
            if case .quiet = step.pacing { pause = knowledge.quietTime(atLeast: settings.quietTime) }
            if case .cut = step.pacing, !step.needsInterim { pause = .zero }
            try await collect(into: &exchange, from: connection, before: start + pause) { step.isPauseOver($0) }
            if !exchange.announcements.isEmpty { exchange.announcementDelay = .now - start }
            if step.pacing.isCut {
                await connection.cut(after: [], before: ContinuousClock.now + .seconds(1))
                try? await Task.sleep(for: settlingTime)
                exchange.missing = "cut after \(request.beginning.count) bytes"
                return
            }
            if exchange.final == nil { connection.send(request.rest) }
        }
        // The wait begins after the whole request was sent, including its pauses.
        try await collect(into: &exchange, from: connection, before: ContinuousClock.now + wait) { _ in false }
        if exchange.final == nil { exchange.missing = "no response within \(settings.timeout.formattedSeconds)" }
        if exchange.final?.isKeptAlive == true, step.pacing.isWhole {
            idle = connection
        } else {
            connection.close()
        }
    }

    /// Sends content in pieces, slowly at first, until the server reports its progress.
    private func pace(
        _ content: [UInt8], on connection: ConformanceConnection, _ exchange: inout Exchange
    ) async throws(ConnectionFailure) {
        let count = 16
        let size = max(content.count / count, 1)
        let start = ContinuousClock.now
        // Servers report progress at intervals, but only while they receive bytes.
        let slow = min(settings.timeout, .seconds(8)) / (count - 1)
        for piece in 0..<count where exchange.final == nil {
            let from = min(piece * size, content.count)
            let to = piece == count - 1 ? content.count : min(from + size, content.count)
            connection.send(content[from..<to])
            exchange.sentBytes = to
            guard piece < count - 1 else { break }
            let isReported = !exchange.announcements.isEmpty
            let pause = ContinuousClock.now + (isReported ? .milliseconds(50) : slow)
            try await collect(into: &exchange, from: connection, before: pause) { exchange in
                !isReported && !exchange.announcements.isEmpty
            }
        }
        exchange.announcementDelay = exchange.announcements.isEmpty ? nil : .now - start
    }

    /// Collects responses until the final one, or until `isEnough` returns `true` for the responses so far.
    private func collect(
        into exchange: inout Exchange, from connection: ConformanceConnection, before end: ContinuousClock.Instant,
        _ isEnough: (Exchange) -> Bool
    ) async throws(ConnectionFailure) {
        while exchange.final == nil, !isEnough(exchange) {
            guard let response = try await connection.next(before: end) else { return }
            if response.isInterim {
                exchange.interim.append(response)
            } else {
                exchange.final = response
            }
        }
    }

    private func connection(to address: ServerAddress) async throws(ConnectionFailure) -> ConformanceConnection {
        if let connection = idle {
            idle = nil
            if connection.isOpen, connection.address.isOnServer(of: address) { return connection }
            connection.close()
        }
        return try await openConnection(to: address)
    }

    /// Opens a connection that is closed after the check.
    func openConnection(to address: ServerAddress) async throws(ConnectionFailure) -> ConformanceConnection {
        let connection = try await ConformanceConnection.open(to: address, timeout: settings.timeout)
        connections.append(connection)
        return connection
    }

    /// Records the upload resources and offsets in the responses, and the delays of interim responses.
    private func learn(from exchange: Exchange, of step: Step) throws {
        for response in exchange.interim + [exchange.final].compactMap(\.self) {
            if let offset = response.fields.uploadOffset { evidence.seenOffset = offset }
        }
        if step.method == "DELETE", exchange.final?.isSuccess == true { uploads.removeAll { $0 == upload } }
        if case .paced = step.pacing {
            knowledge.progress = Self.announcement(in: exchange)
            knowledge.slowAppend = exchange
        }
        guard step.method == "POST" else { return }
        let named = exchange.announcements.compactMap { $0.fields[.location] }.first ?? location(of: exchange, step)
        if let named, let address = server.resolving(named) {
            if address.hasOrigin(of: server) {
                (upload, foreignUpload) = (address, nil)
                uploads.append(address)
            } else {
                (upload, foreignUpload) = (nil, address)
            }
        }
        if step.isAnnouncementExpected, exchange.final?.isSuccess ?? true {
            let announcement = Self.announcement(in: exchange)
            switch (knowledge.announcement, announcement) {
            case (.unknown, _), (_, .sent): knowledge.announcement = announcement
            default: break
            }
        }
        if step.needsInterim, exchange.announcements.isEmpty {
            throw CheckInterruption.notApplicable("the server sends no 104 with the upload resource")
        }
    }

    private static func announcement(in exchange: Exchange) -> ServerKnowledge.Announcement {
        exchange.announcementDelay.map { .sent(after: $0) } ?? .never
    }

    /// The upload resource in a final response; `nil` if the upload is complete: `Location` then names the result.
    private func location(of exchange: Exchange, _ step: Step) -> String? {
        guard let final = exchange.final, final.isSuccess,
            final.fields.uploadCompleteness(in: settings.version) != true,
            step.fields.contains(where: { $0.name == "Upload-Complete" && $0.value.hasPrefix("?0") })
        else { return nil }
        return final.fields[.location]
    }

    /// Deletes the uploads of the check and closes its connections.
    func end() async {
        isEnding = true
        for address in uploads {
            upload = address
            _ = try? await perform(.delete)
        }
        for connection in connections { connection.close() }
    }
}

extension Step {
    private var expectsContinue: Bool { fields.contains { $0.name == "Expect" } }

    /// Whether the delivery can continue after its pause, because of a 100 or a 104 with the upload resource.
    fileprivate func isPauseOver(_ exchange: Exchange) -> Bool {
        if case .quiet = pacing { return false }
        return expectsContinue
            ? exchange.interim.contains { $0.status == 100 } : !exchange.announcements.isEmpty
    }

    /// Whether the server may send a 104 with the upload resource and has time to do so.
    fileprivate var isAnnouncementExpected: Bool {
        guard fields.contains(where: { $0 == ("Upload-Draft-Interop-Version", Self.ownVersion) }),
            fields.contains(where: { $0.name == "Upload-Complete" && $0.value.hasPrefix("?") }), !expectsContinue
        else { return false }
        switch pacing {
        case .paused: return true
        case .cut: return needsInterim
        default: return false
        }
    }
}

extension Step.Pacing {
    /// Whether the whole request is sent without waiting, so that its connection can be used again.
    var isWhole: Bool {
        if case .whole = self { true } else { false }
    }

    /// Whether the connection is closed before the end of the content.
    var isCut: Bool {
        if case .cut = self { true } else { false }
    }
}

extension Duration {
    /// The duration as text, in seconds.
    var formattedSeconds: String {
        let seconds = self / .seconds(1)
        return seconds == seconds.rounded() ? "\(Int(seconds)) s" : "\((seconds * 1000).rounded() / 1000) s"
    }
}
