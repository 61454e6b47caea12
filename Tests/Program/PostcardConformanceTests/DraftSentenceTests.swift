import Testing

@testable import PostcardConformance

/// Each sentence of the draft (the editors' copy of 15 July 2026) with a word of BCP 14, and the checks that it has.
@Suite struct DraftSentenceTests {
    /// A sentence, by the words that identify it.
    struct Sentence: Sendable {
        enum Coverage: Sendable {
            case checks([ClosedRange<Int>])
            /// Why a run against a server cannot check it.
            case none(String)
        }

        let section: String
        let words: String
        let coverage: Coverage

        init(_ section: String, _ words: String, _ checks: ClosedRange<Int>...) {
            (self.section, self.words, coverage) = (section, words, .checks(checks))
        }

        init(_ section: String, _ words: String, no reason: String) {
            (self.section, self.words, coverage) = (section, words, .none(reason))
        }

        /// A sentence about what clients do.
        static func client(_ section: String, _ words: String) -> Sentence {
            Sentence(section, words, no: "It is about clients.")
        }

        fileprivate var numbers: [Int] {
            if case .checks(let ranges) = coverage { ranges.flatMap { Array($0) } } else { [] }
        }
    }

    private static let hidden = "Nothing of it can be seen from outside."

    private static let stateSentences: [Sentence] = [
        Sentence("4", "An upload resource SHOULD be unique", 103...103),
        Sentence("4", "Reuse of a URI for a different upload resource SHOULD be avoided", 104...104),
        Sentence("4.1.1", "the offset MUST NOT decrease", 201...205, 833...833),
        Sentence(
            "4.1.1", "it MUST deactivate the upload resource and reject further interaction",
            no: "A run cannot make a server lose the state of an upload."),
        Sentence("4.1.1", "Other values MUST cause the entire header field to be ignored", 211...219),
        Sentence("4.1.2", "Other values MUST cause the entire header field to be ignored", 231...240),
        .client("4.1.2", "The client SHOULD NOT perform upload resumption after ?1"),
        .client("4.1.3", "a client SHOULD communicate the representation's length"),
        Sentence("4.1.3", "Other values MUST cause the entire header field to be ignored", 251...257),
        Sentence("4.1.3", "their indicated lengths MUST match", 261...263),
        Sentence("4.1.3", "MUST stay consistent across subsequent requests", 264...266),
        Sentence("4.1.4", "A server MAY enforce one or multiple limits", no: "It permits any server."),
        Sentence("4.1.4", "Other values MUST cause the entire header field to be ignored", 301...304),
        .client("4.1.4", "MUST NOT send larger upload append or upload creation requests"),
        .client("4.1.4", "MUST NOT send smaller upload append or upload creation requests"),
        .client("4.1.4", "a client SHOULD NOT attempt to access the upload resource"),
        Sentence("4.1.4", "these limits SHOULD NOT change in a way that causes failures", 321...325),
        .client("4.1.4", "it SHOULD stop the current request immediately"),
        Sentence("4.1.4", "max-size and max-append-size SHOULD NOT decrease", 321...323),
        Sentence("4.1.4", "min-size and min-append-size SHOULD NOT increase", 325...325),
        Sentence("4.1.4", "the end of the upload resource's lifetime … SHOULD NOT decrease", 324...324),
        .client("4.1.4", "a member with an unknown key MUST be ignored"),
        .client("4.1.4", "a value of unexpected type MUST cause the entire header field to be ignored"),
        Sentence("4.1.4", "the server MUST include the Upload-Limit header field in OPTIONS", 313...313),
        Sentence(
            "4.1.4", "it SHOULD include the Upload-Limit header field in response to OPTIONS *",
            no: "Whether all resources of a server have the same limits cannot be seen."),
        Sentence("4.1.4", "it MUST use min-size=0 instead of an empty header value", 316...316),
        Sentence("4.1.4", "SHOULD NOT be less restrictive than the limits applied to an upload", 314...314),
        Sentence("4.1.4", "the response SHOULD include the Upload-Limit header field", 331...338, 340...340),
        .client("4.1.4", "it SHOULD retry the request with a smaller size"),
    ]

    private static let creationSentences: [Sentence] = [
        .client("4.2.1", "it SHOULD indicate the length in the request"),
        .client("4.2.1", "the client SHOULD respect any limits"),
        .client("4.2.1", "the client SHOULD stop the current request immediately"),
        .client("4.2.1", "the inline disposition type is RECOMMENDED"),
        Sentence("4.2.2", "the server SHOULD announce the upload resource", 801...802),
        Sentence("4.2.2", "it MUST include Location header field", 803...803, 805...805),
        Sentence("4.2.2", "MUST include the Upload-Limit header field in the 104", 804...804),
        Sentence("4.2.2", "MUST include the Location response header field", 401...405),
        Sentence("4.2.2", "MUST include the Upload-Limit header field with the corresponding limits", 406...406),
        Sentence("4.2.2", "RECOMMENDED to use the 201 (Created) status code", 407...407),
        Sentence("4.2.2", "The server MUST record the representation's length", 411...414),
        Sentence("4.2.2", "the server MAY send multiple interim responses", 806...806),
        Sentence("4.2.2", "MUST contain an identical Location value", 409...410),
        .client("4.2.2", "clients SHOULD verify this"),
        .client("4.2.2", "clients SHOULD abort the current request and cancel the upload"),
        Sentence("4.2.2", "The server SHOULD include the Upload-Complete header field", 441...442),
        Sentence("4.2.2", "SHOULD NOT generate a response with 301, 302 or 303 and ?0", 443...443),
        Sentence("4.2.2", "the server SHOULD append as much of the request content as possible", 431...432),
        Sentence("4.2.2", "the upload resource MUST NOT be considered complete then", 433...435),
    ]

    private static let retrievalSentences: [Sentence] = [
        .client("4.3.1", "Using HEAD is RECOMMENDED"),
        .client("4.3.1", "the upload MUST be considered a failure"),
        .client("4.3.1", "MUST NOT continue the upload and SHOULD cancel the upload"),
        .client("4.3.1", "MUST NOT perform offset retrieval while the creation is in progress"),
        .client("4.3.1", "the client MAY retry retrieving the offset"),
        Sentence("4.3.2", "MUST include the offset", 501...506, 561...562),
        Sentence("4.3.2", "MUST include the Upload-Complete header field", 511...516),
        Sentence("4.3.2", "MUST include the representation's length", 521...525),
        Sentence("4.3.2", "MUST indicate the limits", 531...532, 563...564),
        Sentence("4.3.2", "SHOULD include the Cache-Control header field", 541...542, 565...565),
        Sentence("4.3.2", "SHOULD NOT generate a response with 301, 302 or 303", 551...554),
    ]

    private static let appendSentences: [Sentence] = [
        .client("4.4.1", "The client MUST indicate the offset"),
        .client("4.4.1", "the offset SHOULD be taken from an immediate previous response"),
        .client("4.4.1", "The request MUST include the Upload-Complete header field"),
        Sentence("4.4.2", "SHOULD append as much of the patch document as possible", 641...643),
        Sentence("4.4.2", "the upload resource MUST NOT be considered complete then", 644...646),
        Sentence("4.4.2", "MUST reject the request with a 409 and ?0", 661...668, 676...677, 680...680, 693...693),
        Sentence("4.4.2", "MUST include the correct offset", 671...675),
        Sentence("4.4.2", "SHOULD generate the response that matches", 631...635),
        Sentence("4.4.2", "MUST include the Upload-Complete header field with a true value", 621...628, 678...679),
        Sentence("4.4.2", "The server MUST record the representation's length", 606...608),
        Sentence("4.4.2", "MUST prevent the offset from exceeding the representation's length", 701...708),
        Sentence("4.4.2", "the server SHOULD send interim responses", 831...831),
        Sentence("4.4.2", "MUST NOT include the Location header field", 832...832),
        Sentence("4.4.2", "The server SHOULD include the Upload-Complete header field", 603...605),
        Sentence("4.4.2", "SHOULD NOT generate a response with 301, 302 or 303 and ?0", 709...709),
        Sentence("4.5.2", "the server SHOULD deactivate the upload resource", 721...726),
        Sentence("4.5.2", "SHOULD terminate any in-flight requests", 734...735),
        Sentence("4.5.2", "SHOULD NOT generate a response with 301, 302 or 303", 731...733),
    ]

    private static let otherSentences: [Sentence] = [
        .client("4.6", "MUST NOT perform multiple representation data transfers in parallel"),
        Sentence("4.6", "the server MUST take measures to prevent race conditions", 757...760),
        Sentence("4.6", "the server MUST NOT send outdated information", 755...756),
        Sentence("4.6", "the offset MUST be accepted in a subsequent request", 751...754),
        Sentence("4.6", "the server SHOULD prevent race conditions by terminating the previous request", 771...773),
        Sentence("4.6", "the server MAY abruptly terminate the previous connection", no: "It permits any server."),
        .client("4.7", "the client SHOULD retrieve the offset before resuming"),
        .client("4.7", "the client MAY automatically attempt upload resumption"),
        .client("4.7", "The client SHOULD limit the number of retries"),
        .client("5", "The client MAY treat a 104 as fulfilling the 100-continue expectation"),
        Sentence("5", "the server MUST NOT omit the 100 (Continue) response", 807...808),
        Sentence("7.1", "A response using this problem type SHOULD populate both members", 911...913),
        .client("10.1.1", "The Upload-Length header field SHOULD be added"),
        .client("11", "it is RECOMMENDED that clients send request content incrementally"),
        Sentence("13", "only authorized clients can access the upload resource", 1111...1114),
        Sentence("13", "RECOMMENDED to generate upload resource URIs that are hard to be guessed", 1101...1102),
        Sentence("13", "MUST ensure that no internal information is leaked in the URI", no: hidden),
        Sentence("13", "metadata MUST be validated and/or sanitized", no: hidden),
        Sentence("13", "SHOULD consider how resumable uploads can circumvent scanning", no: hidden),
        Sentence(
            "13", "SHOULD validate that the user is still allowed to perform the requested action",
            no: "A run cannot take its own permission away."),
        Sentence(
            "13", "Servers SHOULD provide mitigations for Slowloris attacks",
            no: "A run does not attack the server, and what helps depends on where it is."),
        .client("B", "Client implementations of draft versions MUST send the interop version"),
        Sentence("B", "MUST NOT send a 104 when the interop version is missing or mismatching", 811...818),
        Sentence("B", "MUST also send the interop version in the 104", 821...822),
        .client("B", "Client implementations MUST ignore a 104 with missing or mismatching interop version"),
    ]

    static let sentences =
        stateSentences + creationSentences + retrievalSentences + appendSentences + otherSentences

    @Test func `each sentence has checks of its section, or a reason why not`() {
        let sections = Dictionary(uniqueKeysWithValues: ConformanceSuite.checks.map { ($0.number, $0.section) })
        for sentence in Self.sentences {
            guard case .checks = sentence.coverage else { continue }
            let found = sentence.numbers.compactMap { sections[$0] }
            #expect(!found.isEmpty, "\(sentence.section): \(sentence.words)")
            #expect(found.allSatisfy { $0 == sentence.section }, "\(sentence.section): \(sentence.words): \(found)")
        }
    }

    @Test func `each check of a MUST belongs to a sentence`() {
        let numbers = Set(Self.sentences.flatMap(\.numbers))
        for check in ConformanceSuite.checks where check.level.isAbsolute {
            #expect(numbers.contains(check.number), "\(check.number): \(check.sentence)")
        }
    }
}
