import HTTPTypes
import PostcardWire

extension ConformanceSuite {
    /// The checks of 104 responses (§5, §4.2, §4.4) and of their version (appendix B), numbered from 801.
    static let interimResponseChecks: [ConformanceCheck] = announcementChecks + versionChecks + progressChecks

    private static let announcementChecks: [ConformanceCheck] = [
        ConformanceCheck(
            801, "4.2.2", .should,
            "the server SHOULD announce the upload resource by sending an interim response with the 104 (Upload "
                + "Resumption Supported) status code",
            .create(.all, isComplete: true).paused().expecting(.processed, .announcement)),
        ConformanceCheck(
            802, "4.2.2", .should,
            "the server SHOULD announce the upload resource by sending an interim response with the 104 (Upload "
                + "Resumption Supported) status code",
            .create(.all).paused().expecting(.processed, .announcement)),
        ConformanceCheck(
            803, "4.2.2", .must, "When sent, it MUST include Location header field pointing to the upload resource",
            .create(.all, isComplete: true).paused().expecting(
                .whenAnnounced, .firstAnnouncement("a Location in the 104") { $0.fields.contains(.location) })),
        ConformanceCheck(
            804, "4.2.2", .must, "MUST include the Upload-Limit header field with the corresponding limits",
            .create(.all, isComplete: true).paused().expecting(.whenAnnounced, .knownLimitsInAnnouncement)),
        ConformanceCheck(
            805, "4.2.2", .must, "When sent, it MUST include Location header field pointing to the upload resource",
            .create(.all, isComplete: true).cut(at: .half).announced, .head.expecting(.success, .has(.uploadOffset))),
        ConformanceCheck(
            806, "4.2.2", .may, "the server MAY send multiple interim responses with a 104",
            .create(.all, isComplete: true).paused().expecting(
                Expectation { exchange, _ in
                    exchange.announcements.count > 1 ? .met : .notApplicable("the server sends one 104 at most")
                })),
        ConformanceCheck(
            807, "5", .mustNot,
            "the server MUST NOT omit the 100 (Continue) response because it has sent an interim response with the 104",
            .create(.all, isComplete: true).with("Expect", "100-continue").paused(at: .none).expecting(.continuation)),
        ConformanceCheck(
            808, "5", .mustNot,
            "the server MUST NOT omit the 100 (Continue) response because it has sent an interim response with the 104",
            .create(.half),
            .append(.half, .all).with("Expect", "100-continue").paused(at: .half).expecting(.continuation)),
    ]

    private static let versionSentence =
        "MUST NOT send a 104 (Upload Resumption Supported) interim response when the interop version indicated by "
        + "the Upload-Draft-Interop-Version header field in the request is missing or mismatching"
    private static let versionName = "Upload-Draft-Interop-Version"

    private static let versionChecks: [ConformanceCheck] = [
        unannounced(811, .create(.all, isComplete: true).without(versionName)),
        unannounced(812, .create(.all).without(versionName)),
        unannounced(813, .create(.all, isComplete: true).with(versionName, "99")),
        unannounced(814, .create(.all, isComplete: true).with(versionName, "\"{version}\"")),
        unannounced(815, .create(.all, isComplete: true).with(versionName, "{version}.0")),
        unannounced(816, .create(.all, isComplete: true).with(versionName, "?1")),
        unannounced(817, .create(.all, isComplete: true).with(versionName, "{version}, {version}")),
        ConformanceCheck(
            818, "B", .mustNot, versionSentence,
            .create(.half), .append(.half, .all).without(versionName).quiet(at: .most).expecting(.noAnnouncement)),
        ConformanceCheck(
            821, "B", .must,
            "MUST also send a header field Upload-Draft-Interop-Version with the interop version as its value to the 104",
            .create(.all, isComplete: true).paused().expecting(.whenAnnounced, .versionInAnnouncements)),
        ConformanceCheck(
            822, "B", .must,
            "MUST also send a header field Upload-Draft-Interop-Version with the interop version as its value to the 104",
            content: .large,
            .create(.none), .append(.none, .all).paced.announced.expecting(.whenAnnounced, .versionInAnnouncements)),
    ]

    private static func unannounced(_ number: Int, _ step: Step) -> ConformanceCheck {
        ConformanceCheck(
            number, "B", .mustNot, versionSentence, step.quiet().expecting(.noAnnouncement))
    }

    private static let progressChecks: [ConformanceCheck] = [
        ConformanceCheck(
            831, "4.4.2", .should,
            "the server SHOULD send interim responses with a 104 (Upload Resumption Supported) status code and the "
                + "Upload-Offset header field set to the current offset",
            content: .large,
            .create(.none), .append(.none, .all).paced.expecting(.success, .announcement, .progress),
            .head.expecting(.success, .offset(.all))),
        ConformanceCheck(
            832, "4.4.2", .mustNot, "These interim responses MUST NOT include the Location header field.",
            content: .large,
            .create(.none),
            .append(.none, .all).paced.announced.expecting(
                .whenAnnounced,
                .announcements("no Location in a 104") { responses, _ in
                    responses.allSatisfy { !$0.fields.contains(.location) }
                })),
        ConformanceCheck(
            833, "4.1.1", .mustNot, "the offset MUST NOT decrease", content: .large,
            .create(.none),
            .append(.none, .all).paced.announced.expecting(
                .whenAnnounced,
                .announcements("offsets that grow, up to the bytes that were sent") { responses, exchange in
                    let offsets = responses.compactMap(\.fields.uploadOffset)
                    return offsets == offsets.sorted() && offsets.last ?? 0 <= exchange.sentBytes
                })),
    ]
}

extension Expectation {
    private static let isAnnounced = "a 104 (Upload Resumption Supported)"

    static let announcement = Expectation { exchange, evidence in
        guard exchange.announcements.isEmpty else { return .met }
        // A server that supports only numbered versions must not send the 104.
        return evidence.version == .newest
            ? .notApplicable("the server sent no 104 to a request without a version") : .failed(isAnnounced)
    }

    fileprivate static let noAnnouncement = Expectation { exchange, _ in
        exchange.announcements.isEmpty ? .met : .failed("no 104 (Upload Resumption Supported)")
    }

    static let whenAnnounced = Expectation { exchange, _ in
        exchange.announcements.isEmpty ? .notApplicable("the server sent no 104") : .met
    }

    static func firstAnnouncement(
        _ expected: String, _ isMet: @escaping @Sendable (RawResponse) -> Bool
    ) -> Expectation {
        announcements(expected) { responses, _ in responses.first.map(isMet) ?? false }
    }

    fileprivate static func announcements(
        _ expected: String, _ areMet: @escaping @Sendable ([RawResponse], Exchange) -> Bool
    ) -> Expectation {
        Expectation { exchange, _ in areMet(exchange.announcements, exchange) ? .met : .failed(expected) }
    }

    fileprivate static let progress = announcements("an Upload-Offset in a 104") { responses, _ in
        responses.contains { $0.fields.uploadOffset != nil }
    }

    static let versionInAnnouncements = Expectation { exchange, evidence in
        let version = evidence.version.interopNumber
        return exchange.announcements.allSatisfy { $0.fields.interopNumber == version }
            ? .met : .failed("the version \(version ?? 0) in each 104")
    }

    fileprivate static let knownLimitsInAnnouncement = Expectation { exchange, evidence in
        guard !evidence.limits.areEmpty else { return .notApplicable("the server announces no limits") }
        let limits = exchange.announcements.first?.fields.uploadLimits(in: evidence.version)
        return limits != nil ? .met : .failed("an Upload-Limit in the 104")
    }

    /// Expects a 100 if the server sends a 104. If the server sends neither, the client sends its content anyway.
    fileprivate static let continuation = Expectation { exchange, _ in
        guard !exchange.announcements.isEmpty else { return .notApplicable("the server sent no 104") }
        if exchange.interim.contains(where: { $0.status == 100 }) { return .met }
        return exchange.final?.status ?? 0 >= 400
            ? .notApplicable("the server refused the request") : .failed("a 100 (Continue) besides the 104")
    }
}
