import HTTPTypes
import PostcardWire

/// Checks a server against "Resumable Uploads for HTTP" (draft-ietf-httpbis-resumable-upload).
///
/// Each check creates and deletes its own uploads. Uploads that checks complete stay on the server.
package struct ConformanceSuite: Sendable {
    /// The URL to which the checks upload contents.
    package let server: ServerAddress
    /// The content that the checks upload. Defaults to a form.
    package var content = ContentSource.form
    package var settings = CheckSettings()

    package init(server: ServerAddress) {
        self.server = server
    }

    /// All checks, in the order of their numbers.
    package static let checks: [ConformanceCheck] =
        resourceChecks + stateChecks + limitChecks + creationChecks + offsetChecks + appendChecks + appendRefusalChecks
        + cancellationChecks + concurrencyChecks + interimResponseChecks + problemChecks + accessChecks

    /// Runs checks, one after the other. Throws `ConnectionFailure` if the server does not respond at all.
    package func run(
        _ checks: [ConformanceCheck] = Self.checks, onResult: (ConformanceResult) throws -> Void = { _ in }
    ) async throws -> ConformanceReport {
        var probe = ServerProbe(suite: self)
        try await probe.run()
        var results: [ConformanceResult] = []
        for check in checks {
            try Task.checkCancellation()
            let finding = await find(check, &probe)
            let result = ConformanceResult(check: check, outcome: finding.outcome, seen: finding.seen)
            results.append(result)
            try onResult(result)
        }
        return ConformanceReport(results: results)
    }

    private func find(_ check: ConformanceCheck, _ probe: inout ServerProbe) async -> CheckFinding {
        guard check.versions.contains(settings.version) else {
            return CheckFinding(.notApplicable, "the version of the requests does not ask for this")
        }
        guard let content = probe.contents[check.content] else {
            return CheckFinding(.notApplicable, "only the built-in form can be broken")
        }
        let session = CheckSession(self, content: content, kind: check.content, knowledge: probe.knowledge)
        let finding: CheckFinding
        do {
            finding = try await check.run(session)
        } catch CheckInterruption.notApplicable(let reason) {
            finding = CheckFinding(.notApplicable, reason)
        } catch CheckInterruption.unchecked(let reason) {
            finding = CheckFinding(.unchecked, reason)
        } catch {
            finding = CheckFinding(.unchecked, "\(error)")
        }
        await session.end()
        probe.knowledge = session.knowledge
        return finding
    }
}

extension CheckSession {
    fileprivate convenience init(
        _ suite: ConformanceSuite, content: UploadContent, kind: UploadContent.Kind, knowledge: ServerKnowledge
    ) {
        self.init(
            server: suite.server, settings: suite.settings, content: content, kind: kind, knowledge: knowledge)
    }
}

/// The requests before all checks, which find out the server's limits and its responses to ordinary uploads.
private struct ServerProbe {
    let suite: ConformanceSuite
    var knowledge = ServerKnowledge()
    private(set) var contents: [UploadContent.Kind: UploadContent] = [:]

    /// The maximum size of a content, in bytes, for a server with a large `min-append-size`.
    private static let maximumBytes: Int64 = 64 << 20

    /// Makes the requests before all checks. Throws `ConnectionFailure` if the server does not respond.
    mutating func run() async throws {
        try await makeContents()
        try await learn { session in
            let options = try await session.perform(.options)
            guard let final = options.final else { throw ConnectionFailure(options.missing) }
            let creation = try await session.perform(.create(.none))
            let head = session.upload == nil ? nil : try await session.perform(.head).final
            var limits = KnownLimits()
            limits.ofOptions = final.fields.uploadLimits(in: session.settings.version)
            limits.ofCreation = creation.final?.fields.uploadLimits(in: session.settings.version)
            limits.ofHead = head?.fields.uploadLimits(in: session.settings.version)
            return { $0.limits = limits }
        }
        try await makeContents()
        for kind in contents.keys where kind != .large {
            try await learn(kind) { session in
                guard let final = try await session.perform(.conventional()).final else { return { _ in } }
                return { $0.conventional[kind] = (final.status, final.fields[.contentType]) }
            }
        }
    }

    private mutating func learn(
        _ kind: UploadContent.Kind = .whole,
        _ look: (CheckSession) async throws -> ((inout ServerKnowledge) -> Void)
    ) async throws {
        guard let content = contents[kind] else { return }
        let session = CheckSession(suite, content: content, kind: kind, knowledge: knowledge)
        do {
            let change = try await look(session)
            await session.end()
            knowledge = session.knowledge
            change(&knowledge)
        } catch {
            await session.end()
            throw error
        }
    }

    /// Makes contents that satisfy the limits known so far.
    private mutating func makeContents() async throws {
        let limits = knowledge.limits
        // The smallest appended piece is a quarter of the content.
        var size = Int64(ContentSource.ordinaryBytes)
        size = max(size, (limits.minimumAppendBytes ?? 0) * 4, limits.minimumBytes ?? 0)
        let most = [limits.maximumBytes, limits.maximumAppendBytes, Self.maximumBytes].compactMap(\.self).min() ?? size
        let ordinary = Int(min(size, most))
        let large = Int(min(Int64(ContentSource.largeBytes), most))
        contents[.whole] = try await suite.content.content(ofAbout: ordinary)
        contents[.large] = try await suite.content.content(ofAbout: large)
        if case .form = suite.content, let form = contents[.whole] {
            contents[.broken] = form.broken
            contents[.malformed] = form.malformed
        }
    }
}

package struct ConformanceResult: Sendable {
    package let check: ConformanceCheck
    package let outcome: CheckOutcome
    /// The server's behavior, or the reason why nothing could be checked. The text may quote the server.
    package let seen: String
}

extension ConformanceResult: Encodable {
    private enum CodingKeys: CodingKey {
        case id, section, sentence, level, outcome, seen
    }

    package func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(check.number, forKey: .id)
        try values.encode(check.section, forKey: .section)
        try values.encode(check.sentence, forKey: .sentence)
        try values.encode(check.level.rawValue, forKey: .level)
        try values.encode(outcome.rawValue, forKey: .outcome)
        try values.encode(seen, forKey: .seen)
    }
}

/// The results of all checks of a run.
package struct ConformanceReport: Sendable {
    package let results: [ConformanceResult]

    package init(results: [ConformanceResult]) {
        self.results = results
    }

    package func count(of outcome: CheckOutcome) -> Int {
        results.count { $0.outcome == outcome }
    }

    /// Whether the server meets every MUST and MUST NOT that was checked. `false` if nothing could be checked.
    package var conforms: Bool {
        guard results.contains(where: { $0.outcome != .unchecked }) || results.isEmpty else { return false }
        return violatedRequirements == 0
    }

    /// The number of checks that found a violated MUST or MUST NOT.
    package var violatedRequirements: Int {
        results.count { $0.outcome == .violated && $0.check.level.isAbsolute }
    }
}
