import Foundation
import PostcardForm
import PostcardWire
import PostcardSendingSupport
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardClient

/// What the rules of version 9 make a client do, request by request, on both transports. The sections are those of the
/// editors' copy of 15 July 2026.
@Suite(.timeLimit(.minutes(10))) struct DraftHistoryTests {
    /// A request that the server expects, and what it does then.
    struct Exchange: Sendable {
        /// The method and, if the request is of the draft, `OFFSET+CONTENT COMPLETENESS`, with `all` for the length of
        /// the form and `rest` for what is left of it.
        let request: String
        /// The fields of a 104 before the response.
        var announced: [String: String] = [:]
        /// The final response; `nil` if the connection is closed.
        var status: String?
        /// The response's fields, with `{all}` for the length of the form.
        var fields: [String: String] = [:]

        init(_ request: String, _ status: String, _ fields: [String: String] = [:]) {
            (self.request, self.status, self.fields) = (request, status, fields)
        }

        /// A 104, and a response after it.
        static func announced(
            _ request: String, _ announced: [String: String], _ status: String, _ fields: [String: String]
        ) -> Exchange {
            var exchange = Exchange(request, status, fields)
            exchange.announced = announced
            return exchange
        }

        /// - Parameter announced: With it libcurl does not repeat the request by itself.
        static func cut(_ request: String, after announced: [String: String] = ["Upload-Offset": "0"]) -> Exchange {
            var exchange = Exchange(request, "")
            (exchange.announced, exchange.status) = (announced, nil)
            return exchange
        }
    }

    struct History: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let exchanges: [Exchange]
        /// The status of the response; `nil` if the upload fails.
        let status: Int?

        init(_ testDescription: String, _ exchanges: [Exchange], endsWith status: Int? = 201) {
            (self.testDescription, self.exchanges, self.status) = (testDescription, exchanges, status)
        }
    }

    /// The only size of an append that is tried once the whole form was refused without a limit.
    private static let cautiousBytes: Int64 = 60_000

    private static func offered(_ limits: String) -> Exchange {
        Exchange("OPTIONS", "204 No Content", ["Upload-Limit": limits])
    }

    private static func located(_ offset: String, _ completeness: String = "?0") -> Exchange {
        Exchange("HEAD", "204 No Content", ["Upload-Offset": offset, "Upload-Complete": completeness])
    }

    private static func accepted(_ request: String) -> Exchange {
        Exchange(request, "204 No Content", ["Upload-Complete": "?0"])
    }

    private static func finished(_ request: String) -> Exchange {
        Exchange(request, "201 Created", ["Upload-Complete": "?1"])
    }

    private static let created = Exchange(
        "POST +0 ?0", "201 Created", ["Location": "/uploads/a", "Upload-Complete": "?0"])
    private static let begun = [offered("min-size=0"), created]
    private static let whole = "PATCH 0+rest ?1"
    private static let broken = begun + [.cut(whole)]
    private static let resumed = [located("40000"), finished("PATCH 40000+rest ?1")]
    private static let deleted = Exchange("DELETE", "204 No Content")

    /// A refusal of the whole form as an append, and how the upload continues.
    private static func refused(_ status: String, _ fields: [String: String]) -> [Exchange] {
        begun + [Exchange(whole, status, fields)]
    }

    private static let limits = [
        History(
            "4.1.4: a creation has no content, whatever the smallest append is",
            [offered("min-append-size=20000"), created, finished(whole)]),
        History(
            "4.1.4: Upload-Limit alone offers resumption, and so does Accept-Patch of earlier servers",
            [
                Exchange("OPTIONS", "204 No Content", ["Accept-Patch": "application/partial-upload"]), created,
                finished(whole),
            ]),
        History(
            "4.1.4: a refusal without limits makes the client ask for them",
            refused("413 Content Too Large", [:]) + [
                located("0"), Exchange("PATCH 0+60000 ?0", "413 Content Too Large"), offered("max-append-size=50000"),
                located("0"), accepted("PATCH 0+50000 ?0"), accepted("PATCH 50000+50000 ?0"),
                finished("PATCH 100000+rest ?1"),
            ]),
        History(
            "4.2.1: the limits in a 104 to an append count for the next one",
            begun + [
                .cut(whole, after: ["Upload-Limit": "max-append-size=50000"]), located("40000"),
                accepted("PATCH 40000+50000 ?0"), finished("PATCH 90000+rest ?1"),
            ]),
        History(
            "4.7: a refusal with limits makes the next append smaller",
            refused("413 Content Too Large", ["Upload-Complete": "?0", "Upload-Limit": "max-append-size=80000"]) + [
                located("0"), accepted("PATCH 0+80000 ?0"), finished("PATCH 80000+rest ?1"),
            ]),
    ]

    private static let completeness = [
        History(
            "4.1.2: a success with ?1 to the creation is the response of the upload",
            [offered("min-size=0"), Exchange("POST +0 ?0", "200 OK", ["Upload-Complete": "?1"])], endsWith: 200),
        History(
            "4.1.2: a refusal with ?1 to the creation is the response of the upload",
            [offered("min-size=0"), Exchange("POST +0 ?0", "422 Unprocessable Content", ["Upload-Complete": "?1"])],
            endsWith: nil),
        History(
            "4.1.2: a success with ?1 to a piece of the form is the response of the upload",
            [offered("max-append-size=50000"), created, finished("PATCH 0+50000 ?0")]),
        History(
            "4.4.2: a complete upload is asked for its response by an append without content",
            broken + [located("{all}", "?1"), finished("PATCH all+rest ?1")]),
    ]

    private static let retrievals = [
        History(
            "4.3.1: HEAD is repeated when the upload is locked",
            broken + [Exchange("HEAD", "423 Locked")] + resumed),
        History(
            "4.3.1: HEAD is repeated after a conflict",
            broken + [Exchange("HEAD", "409 Conflict", ["Upload-Complete": "?0"])] + resumed),
        History(
            "4.3.1: HEAD is repeated after an error of the server",
            broken + [Exchange("HEAD", "503 Service Unavailable", ["Retry-After": "0"])] + resumed),
        History(
            "4.3.1: a success without an offset is none of the upload, which begins again",
            broken + [Exchange("HEAD", "204 No Content"), created, finished(whole)]),
        History(
            "4.3.1: an offset beyond what was sent is taken, if the form has the bytes",
            [
                offered("max-append-size=50000"), created, .cut("PATCH 0+50000 ?0"), located("90000"),
                finished("PATCH 90000+rest ?1"),
            ]),
        History(
            "4.3.1: an offset beyond the form ends the upload, which is deleted",
            broken + [located("200000"), deleted], endsWith: nil),
    ]

    private static let silent = Exchange("OPTIONS", "405 Method Not Allowed")
    private static let invitation = "POST +rest ?1"
    private static let waiting = Exchange(
        invitation, "201 Created", ["Upload-Complete": "?0", "Location": "/uploads/a"])
    private static let gone = Exchange("HEAD", "404 Not Found")

    private static let invitations: [History] =
        [
            History(
                "4.2: a success with ?0 that names no resource is not that of the form",
                [silent, Exchange(invitation, "201 Created", ["Upload-Complete": "?0"])], endsWith: nil),
            History(
                "4.2: a server that always waits for more and forgets it is left after five times",
                [silent] + [[Exchange]](repeating: [waiting, gone], count: 4).flatMap(\.self) + [waiting],
                endsWith: nil),
        ]
        + [
            ("408 Request Timeout", [:]), ("425 Too Early", [:]), ("429 Too Many Requests", ["Retry-After": "0"]),
            ("409 Conflict", ["Upload-Complete": "?0"]), ("503 Service Unavailable", ["Retry-After": "0"]),
        ].map { (status: String, fields: [String: String]) -> History in
            History(
                "4.7: the resource of a 104 is used after \(status)",
                [silent, .announced(invitation, ["Location": "/uploads/a"], status, fields)] + resumed)
        } + [
            History(
                "4.7: the resource of a 104 gets smaller appends after a refusal with limits",
                [
                    silent,
                    .announced(
                        invitation, ["Location": "/uploads/a"], "413 Content Too Large",
                        ["Upload-Complete": "?0", "Upload-Limit": "max-append-size=80000"]), located("0"),
                    accepted("PATCH 0+80000 ?0"), finished("PATCH 80000+rest ?1"),
                ])
        ]

    private static let retries = [
        History(
            "4.7: a conflict with the offset resumes there",
            refused("409 Conflict", ["Upload-Complete": "?0", "Upload-Offset": "40000"]) + resumed),
        History(
            "4.7: a conflict without the offset asks for it",
            refused("409 Conflict", ["Upload-Complete": "?0"]) + resumed),
        History(
            "4.7: too many requests are waited for", refused("429 Too Many Requests", ["Retry-After": "0"]) + resumed),
        History(
            "4.7: an error of the server is waited for",
            refused("503 Service Unavailable", ["Upload-Complete": "?0", "Retry-After": "0"]) + resumed),
        History(
            "4.1.4: a connection that breaks when the limits are asked for leaves the upload",
            refused("413 Content Too Large", [:]) + [
                located("0"), Exchange("PATCH 0+60000 ?0", "413 Content Too Large"), .cut("OPTIONS"), located("0"),
                Exchange("PATCH 0+60000 ?0", "413 Content Too Large"), offered("max-append-size=50000"),
                located("0"), accepted("PATCH 0+50000 ?0"), accepted("PATCH 50000+50000 ?0"),
                finished("PATCH 100000+rest ?1"),
            ]),
        History(
            "B: a success of the last append counts in any version",
            begun + [Exchange(whole, "201 Created", ["Upload-Draft-Interop-Version": "8"])]),
        History(
            "4.7: an error of the server with ?1 is the response of the upload",
            refused("500 Internal Server Error", ["Upload-Complete": "?1"]), endsWith: nil),
    ]

    static let histories = limits + completeness + retrievals + retries + invitations

    /// Plays the server's part.
    private final class Script: Sendable {
        private let exchanges: [Exchange]
        private let length: Int
        private let state = Mutex<[String]>([])

        init(_ exchanges: [Exchange], formOf length: Int) {
            (self.exchanges, self.length) = (exchanges, length)
        }

        /// The requests so far, as ``Exchange/request`` has them.
        var requests: [String] { state.withLock { $0 } }

        func serve(_ connection: RawConnection) async throws {
            while let request = try await connection.readRequest() {
                let line = describe(request)
                let number = state.withLock { requests in
                    requests.append(line)
                    return requests.count - 1
                }
                guard exchanges.indices.contains(number), exchanges[number].request == line else {
                    try await connection.respond("400 Bad Request", ["Upload-Complete": "?1"])
                    continue
                }
                let exchange = exchanges[number]
                if !exchange.announced.isEmpty {
                    let fields = exchange.announced.map { "\($0.key): \($0.value)\r\n" }.joined()
                    try await connection.write(
                        "HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Draft-Interop-Version: 9\r\n\(fields)\r\n")
                }
                guard let status = exchange.status else { return }
                try await connection.respond(
                    status, exchange.fields.mapValues { $0.replacing("{all}", with: "\(length)") })
            }
        }

        private func describe(_ request: RawRequest) -> String {
            guard let completeness = request.head["Upload-Complete"] else { return request.method }
            let offset = request.head["Upload-Offset"] ?? ""
            let isRest = Int(offset) ?? 0 == length - request.body.count
            return "\(request.method) \(offset == "\(length)" ? "all" : offset)+"
                + (isRest ? "rest" : "\(request.body.count)") + " \(completeness)"
        }
    }

    @Test(arguments: Carrier.allCases, histories)
    func `each rule has its requests, under one key, and content is asked to be passed on as it arrives`(
        carrier: Carrier, history: History
    ) async throws {
        let folder = try TemporaryFolder()
        var form = MultipartForm()
        form.append(fileAt: try folder.file("a.jpg", size: 100_000), named: "image")
        let (sent, length) = (form, try #require(try form.layout().contentLength))
        let script = Script(history.exchanges, formOf: Int(length))
        let requests = try await RawServer.run { connection in
            try await script.serve(connection)
        } while: { server in
            var client = ResumptionTests.client(carrier, [.interop9])
            client.retryPolicy = .withoutDelays(maximumAttempts: 1)
            client.resumption?.cautiousAppendBytes = Self.cautiousBytes...Self.cautiousBytes
            let sending = client
            if let status = history.status {
                let response = try await sending.upload(sent, to: server.url)
                #expect(response.status.code == status)
            } else {
                let error = try await #require(throws: UploadError.self) {
                    try await sending.upload(sent, to: server.url)
                }
                #expect(error.code == .refused, "\(error)")
            }
            return server.requests.whole
        }
        #expect(script.requests == history.exchanges.map(\.request))
        #expect(Set(requests.compactMap { $0.head["Idempotency-Key"] }).count == 1)
        #expect(requests.allSatisfy { $0.head["Upload-Draft-Interop-Version"] == "9" })
        #expect(requests.allSatisfy { $0.head["Incremental"] == ($0.body.isEmpty ? nil : "?1") })
    }
}
