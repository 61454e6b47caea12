import Foundation
import PostcardConformance
import PostcardTestSupport
import Testing

@Suite("postcard conformance", .timeLimit(.minutes(10)))
struct ConformanceCommandTests {
    @Test(arguments: [
        ["conformance"], ["conformance", "example.com"], ["conformance", "http://a/", "--only", "1"],
        ["conformance", "http://a/", "--only", "x"], ["conformance", "http://a/", "--raw", "--body", "a"],
        ["conformance", "http://a/", "--body", "a"], ["conformance", "http://a/", "--timeout", "0"],
        ["conformance", "http://a/", "-H", "no colon"], ["conformance", "http://a/", "--interop-version", "2"],
        ["conformance", "http://a/", "--interop-version", "10"], ["conformance", "http://a/", "--as", "ios16"],
        ["conformance", "http://a/", "--as", "ios17", "--interop-version", "3"],
    ])
    func `a wrong command line ends it with 64`(arguments: [String]) async throws {
        #expect(try await Program.run(arguments).status == 64)
    }

    @Test func `a content that cannot be read ends it with 66`() async throws {
        let folder = try TemporaryFolder()
        let short = try folder.file("short", "abc".utf8)
        for path in ["\(folder.path)/missing", short.path, folder.path] {
            let ending = try await Program.run([
                "conformance", "http://127.0.0.1:1/", "--body", path, "--content-type", "text/plain",
            ])
            #expect(ending.status == 66, "\(path): \(ending.messages)")
        }
    }

    @Test func `no connection ends it with 69`() async throws {
        // The port is reserved, and nothing listens on it.
        let ending = try await Program.run(["conformance", "http://127.0.0.1:1/uploads"])
        #expect(ending.status == 69)
        #expect(
            ending.messages
                == "postcard: http://127.0.0.1:1/uploads: no connection to 127.0.0.1, port 1: Connection refused\n")
    }

    @Test func `a server without TLS ends it with 69 at an https URL`() async throws {
        try await ModelServer.run { address in
            let url = address.description.replacing("http://", with: "https://")
            let ending = try await Program.run(["conformance", url, "--timeout", "30"])
            #expect(ending.status == 69)
            #expect(ending.messages.hasPrefix("postcard: \(url): the connection "), "\(ending.messages)")
        }
    }

    @Test func `a check is a line with its number, outcome, section, level and sentence, or an object`() async throws {
        try await ModelServer.run { address in
            let ending = try await Program.run(["conformance", address.description, "--only", "402", "1111"])
            #expect(ending.status == 0, "\(ending.messages)")
            #expect(
                ending.text == """
                    402  ok  §4.2.2  MUST: the server MUST include the Location response header
                          field pointing to the upload resource
                    1111  not applicable  §13  SHOULD: the server SHOULD ensure that only authorized
                          clients can access the upload resource
                          seen: the requests name no client

                    2 checks: 1 ok, 0 violated, 1 not applicable, 0 could not be checked.

                    """)
            let options = ["--only", "402", "1110-1119", "-H", "Authorization: Bearer a", "--json"]
            let json = try await Program.run(["conformance", address.description] + options)
            let array = try #require(try JSONSerialization.jsonObject(with: json.output) as? [[String: Any]])
            #expect(array.map { $0["id"] as? Int } == [402, 1111, 1112, 1113, 1114])
            // The server lets anyone in, which is a SHOULD.
            #expect(array.map { $0["outcome"] as? String } == ["ok"] + [String](repeating: "violated", count: 4))
            #expect(json.status == 0)
        }
    }

    @Test func `a violated MUST ends it with 1`() async throws {
        try await ModelServer.run(.omitsLocation) { address in
            let ending = try await Program.run(["conformance", address.description, "--only", "401", "407"])
            #expect(ending.status == 1)
            #expect(ending.text.contains("401  violated  §4.2.2  MUST: "))
            #expect(ending.text.contains("seen: POST: "))
            // Where lines break depends on the order of the fields in the responses.
            let words = ending.text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            #expect(words.contains(", not the field Location 407 ok"))
        }
    }

    @Test(arguments: UploadingSystem.allCases)
    func `a system's uploads are shown to be resumed, or what keeps them from it`(
        system: UploadingSystem
    ) async throws {
        let server = try await ReceivingServer()
        let address = server.uploads.absoluteString
        let resumed = try await Program.run(["conformance", address, "--as", system.rawValue])
        #expect(resumed.status == 0, "\(resumed.text)")
        #expect(resumed.text.hasSuffix("\(system.name) would resume an upload that breaks.\n"), "\(resumed.text)")
        _ = try await server.end()
        let silent = try await ReceivingServer("--interim-responses", "never")
        let lost = try await Program.run(["conformance", silent.uploads.absoluteString, "--as", system.rawValue])
        #expect(lost.status == 1)
        #expect(lost.text.contains("\(system.name) would not resume an upload that breaks, because of 1201: POST: "))
        _ = try await silent.end()
        // Nothing is violated, and nothing is known.
        let closed = try await ReceivingServer("--token", "secret")
        let unknown = try await Program.run(["conformance", closed.uploads.absoluteString, "--as", system.rawValue])
        #expect(unknown.status == 1)
        let sentence = "Whether \(system.name) would resume an upload that breaks was not found out, because of 1201: "
        #expect(unknown.text.contains(sentence), "\(unknown.text)")
        _ = try await closed.end()
    }

    @Test func `the requests name the version that is chosen, or none`() async throws {
        try await ModelServer.run { address in
            // The model names the version in its 104 only if it knows that of the request.
            for (version, outcome) in [("8", "ok"), ("9", "ok"), ("none", "not applicable"), ("6", "not applicable")] {
                let options = ["--only", "821", "--interop-version", version]
                let ending = try await Program.run(["conformance", address.description] + options)
                #expect(ending.text.hasPrefix("821  \(outcome)  "), "\(version): \(ending.text)")
            }
        }
    }
}
