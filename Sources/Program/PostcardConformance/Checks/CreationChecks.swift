import HTTPTypes
import PostcardWire

extension ConformanceSuite {
    /// The checks of the creation of uploads (§4.2), numbered from 401.
    static let creationChecks: [ConformanceCheck] =
        locationChecks + processingChecks + interruptedCreationChecks + originChecks

    private static let locationSentence =
        "the server MUST include the Location response header field pointing to the upload resource"

    private static let locationChecks: [ConformanceCheck] = [
        ConformanceCheck(
            401, "4.2.2", .must, locationSentence, .create(.half).expecting(.processed, .has(.location))),
        ConformanceCheck(
            402, "4.2.2", .must, locationSentence, .create(.none).expecting(.processed, .has(.location))),
        ConformanceCheck(
            403, "4.2.2", .must, locationSentence, .create(.all).expecting(.processed, .has(.location))),
        ConformanceCheck(
            404, "4.2.2", .must, locationSentence,
            .create(.half).with("Upload-Length", "{all}").expecting(.processed, .has(.location))),
        ConformanceCheck(
            405, "4.2.2", .must, locationSentence,
            .create(.half), .head.expecting(.success, .has(.uploadOffset))),
        ConformanceCheck(
            406, "4.2.2", .must, "MUST include the Upload-Limit header field with the corresponding limits if existing",
            .create(.half).expecting(.processed, .knownLimits)),
        ConformanceCheck(
            407, "4.2.2", .should, "Servers are RECOMMENDED to use the 201 (Created) status code.",
            .create(.half).expecting(.processed, .status(201))),
        ConformanceCheck(
            408, "4.2.1", .should, "An Upload-Complete header field set to false is also valid.",
            .create(.none), .append(.none, .half).expecting(.success), .head.expecting(.offset(.half))),
        ConformanceCheck(
            409, "4.2.2", .must,
            "all interim and final response messages for the same request MUST contain an identical Location value",
            .create(.half).paused(at: .quarter).announced.expecting(.success, .sameLocations)),
        ConformanceCheck(
            410, "4.2.2", .must,
            "all interim and final response messages for the same request MUST contain an identical Location value",
            .create(.all, isComplete: true).paused().announced.expecting(.success, .sameLocations)),
        ConformanceCheck(
            411, "4.2.2", .must, "The server MUST record the representation's length",
            .create(.half).with("Upload-Length", "{all}"), .head.expecting(.success, .length(.all))),
        ConformanceCheck(
            412, "4.2.2", .must, "The server MUST record the representation's length",
            .create(.none).with("Upload-Length", "{all}"), .head.expecting(.success, .length(.all))),
        ConformanceCheck(
            413, "4.2.2", .must, "The server MUST record the representation's length",
            .create(.all, isComplete: true).cut(at: .half).announced,
            .head.repeated.expecting(.success, .length(.all))),
        ConformanceCheck(
            414, "4.2.2", .must, "The server MUST record the representation's length",
            .create(.all, isComplete: true).chunked.with("Upload-Length", "{all}").cut(at: .half).announced,
            .head.repeated.expecting(.success, .length(.all))),
    ]

    private static let processingChecks: [ConformanceCheck] = [
        ConformanceCheck(
            421, "4.2.2", .should,
            "no resumable upload is needed and the server proceeds to process the request and generate a response",
            .create(.all, isComplete: true).expecting(.conventionalStatus)),
        ConformanceCheck(
            422, "4.2.2", .should,
            "no resumable upload is needed and the server proceeds to process the request and generate a response",
            .create(.all, isComplete: true).with("Upload-Length", "{all}").expecting(.conventionalStatus)),
        ConformanceCheck(
            423, "4.2.2", .should,
            "no resumable upload is needed and the server proceeds to process the request and generate a response",
            .create(.all, isComplete: true).chunked.expecting(.conventionalStatus)),
        ConformanceCheck(
            424, "4.2.2", .should,
            "no resumable upload is needed and the server proceeds to process the request and generate a response",
            content: .broken, .create(.all, isComplete: true).expecting(.conventionalStatus)),
        ConformanceCheck(
            425, "4.2.2", .should,
            "no resumable upload is needed and the server proceeds to process the request and generate a response",
            .create(.all, isComplete: true).expecting(.conventionalContentType)),
        ConformanceCheck(
            426, "4.2.1", .should,
            "If the Upload-Complete header field is then set to true, the client intends to upload an empty "
                + "representation."
        ) { session in
            let conventional = try await session.perform(.conventional(.none))
            let resumable = try await session.perform(.create(.none, isComplete: true))
            guard let expected = conventional.final?.status else {
                throw CheckInterruption.unchecked(conventional.summary)
            }
            return CheckFinding(
                resumable.final?.status == expected ? .ok : .violated,
                "\(resumable.summary); \(expected) in one conventional request")
        },
        ConformanceCheck(
            427, "4.2.2", .should,
            "The resource targeted by this initial request is responsible for processing the representation data",
            .create(.half), .append(.half, .all, isComplete: true).expecting(.conventionalStatus)),
        ConformanceCheck(
            428, "10.1.1", .should,
            "The client can invite the server to upgrade such a request to a resumable upload by adding the "
                + "Upload-Complete: ?1 header field to the original request.",
            .create(.all, isComplete: true).paused().expecting(.conventionalStatus)),
        ConformanceCheck(
            429, "4.2.2", .should,
            "no resumable upload is needed and the server proceeds to process the request and generate a response",
            content: .malformed, .create(.all, isComplete: true).expecting(.conventionalStatus)),
    ]

    private static let interruptedCreationChecks: [ConformanceCheck] = [
        ConformanceCheck(
            431, "4.2.2", .should,
            "the server SHOULD append as much of the request content as possible to the upload resource",
            .create(.all, isComplete: true).cut(at: .half).announced,
            .head.repeated.expecting(.success, .offset(.half))),
        ConformanceCheck(
            432, "4.2.2", .should,
            "the server SHOULD append as much of the request content as possible to the upload resource",
            .create(.all).cut(at: .half).announced, .head.repeated.expecting(.success, .offset(.half))),
        ConformanceCheck(
            433, "4.2.2", .mustNot, "the upload resource MUST NOT be considered complete then",
            .create(.all, isComplete: true).cut(at: .half).announced,
            .head.repeated.expecting(.success, .completeness(false))),
        ConformanceCheck(
            434, "4.2.2", .mustNot, "the upload resource MUST NOT be considered complete then",
            .create(.all, isComplete: true).chunked.cut(at: .half).announced,
            .head.repeated.expecting(.success, .completeness(false))),
        ConformanceCheck(
            435, "4.2.2", .mustNot, "the upload resource MUST NOT be considered complete then",
            .create(.all).cut(at: .half).announced, .head.repeated.expecting(.success, .completeness(false))),
        ConformanceCheck(
            436, "4.2.2", .should, "allowing the client to resume the upload from where it was interrupted",
            .create(.all, isComplete: true).cut(at: .half).announced, .head,
            .append(.seen, .all, isComplete: true).expecting(.conventionalStatus)),
        ConformanceCheck(
            437, "4.2.2", .should, "allowing the client to resume the upload from where it was interrupted",
            .create(.all, isComplete: true).chunked.cut(at: .half).announced, .head,
            .append(.seen, .all, isComplete: true).expecting(.conventionalStatus)),
    ]

    private static let originSentence =
        "The server SHOULD include the Upload-Complete … header field in the response to indicate whether it is the result "
        + "of processing the uploaded representation."

    private static let originChecks: [ConformanceCheck] = [
        ConformanceCheck(
            441, "4.2.2", .should, originSentence, .create(.half).expecting(.processed, .completeness(false))),
        ConformanceCheck(
            442, "4.2.2", .should, originSentence,
            .create(.all, isComplete: true).paused().expecting(.processed, .completeness(true))),
        ConformanceCheck(
            443, "4.2.2", .shouldNot,
            "The server SHOULD NOT generate a response with the 301 (Moved Permanently), 302 (Found), or 303 (See Other) "
                + "status codes and the Upload-Complete: ?0 header field",
            .create(.half).expecting(.noUnsafeRedirect)),
    ]
}

extension Expectation {
    /// Expects the same `Location` in all responses. The response of a complete upload may name its result instead.
    fileprivate static let sameLocations = Expectation { exchange, evidence in
        var locations = exchange.announcements.compactMap { $0.fields[.location] }
        if let final = exchange.final, final.fields.uploadCompleteness(in: evidence.version) != true {
            locations += [final.fields[.location]].compactMap(\.self)
        }
        return Set(locations).count <= 1 ? .met : .failed("one Location in all responses")
    }
}
