import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(10))) struct UploadEndpointTests {
    struct Query: Encodable, Sendable {
        var tags = ["a b", "c+d"]
        var owner = ["name": "초코&=?"]
        var isNew = true
        var missing: String?
        var key = Data([0, 255])
    }

    private struct AddPet: UploadEndpoint {
        struct Response: Decodable, Equatable { let id: String }

        let baseURL: URL
        var path = "v1/pets"
        var query: (any Encodable & Sendable)?
        var method = HTTPRequest.Method.put
        var headerFields: HTTPFields = [.acceptLanguage: "ko"]
        var acceptedStatuses: Set<Int>? = [202]
        let made = Counter()

        func form() throws -> MultipartForm {
            made.add()
            var form = MultipartForm()
            form.append("초코", named: "name")
            return form
        }
    }

    private final class Counter: Sendable {
        private let value = Mutex(0)
        var count: Int { value.withLock { $0 } }
        func add() { value.withLock { $0 += 1 } }
    }

    @Test(arguments: Carrier.allCases)
    func `an endpoint's form is made once, sent as it says, and its response read`(carrier: Carrier) async throws {
        let isSecond = Mutex(false)
        try await RawServer.run { connection in
            while try await connection.readRequest() != nil {
                let isReady = isSecond.withLock { isSecond in
                    defer { isSecond = true }
                    return isSecond
                }
                // 200 is none of those that this endpoint accepts, and 202 is.
                try await connection.respond(isReady ? "202 Accepted" : "503 No", body: #"{"id":"7"}"#)
            }
        } while: { server in
            let client = UploadClient(
                transport: carrier.transport(), retryPolicy: .withoutDelays(maximumAttempts: 2))
            let endpoint = AddPet(baseURL: server.url, query: Query())
            let pet = try await client.upload(endpoint)
            #expect(pet == AddPet.Response(id: "7"))
            #expect(endpoint.made.count == 1)
            let requests = server.requests.whole
            #expect(
                requests.last?.head.line
                    == "PUT /uploads/v1/pets?tags=a%20b&tags=c%2Bd&owner%5Bname%5D=%EC%B4%88%EC%BD%94%26%3D%3F"
                    + "&isNew=true&key=AP8%3D HTTP/1.1")
            #expect(requests.last?.head["Accept-Language"] == "ko")
            #expect(Set(requests.map(\.body)).count == 1)
            #expect(Set(requests.map { $0.head["Content-Type"] }).count == 1)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a status that an endpoint does not accept is a refusal`(carrier: Carrier) async throws {
        try await Responses.run([("201 Created", [:])]) { server in
            let error = try await #require(throws: UploadError.self) {
                try await UploadClient(transport: carrier.transport()).upload(AddPet(baseURL: server.url))
            }
            #expect(error.code == .refused)
            #expect(error.response?.status.code == 201)
        }
    }

    @Test func `its events are those of an upload`() async throws {
        try await Responses.run([("202 Accepted", [:])]) { server in
            var last: UploadEvent?
            for try await event in UploadClient().events(of: AddPet(baseURL: server.url)) { last = event }
            guard case .done(let response) = last else {
                Issue.record("no response")
                return
            }
            #expect(response.status.code == 202)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `an empty response is enough where none is expected`(carrier: Carrier) async throws {
        struct Endpoint: UploadEndpoint {
            typealias Response = NoResponse
            let baseURL: URL
            let path = ""
            func form() -> MultipartForm { MultipartForm() }
        }
        try await Responses.run([("204 No Content", [:])]) { server in
            let endpoint = Endpoint(baseURL: server.url)
            let response = try await UploadClient(transport: carrier.transport()).upload(endpoint)
            #expect(response == NoResponse())
            #expect(server.requests.heads.first?.line == "POST /uploads HTTP/1.1")
        }
    }

    @Test(arguments: [
        ("http://a.example", "pets", "http://a.example/pets"), ("http://a.example/", "/pets", "http://a.example/pets"),
        ("http://a.example/v1/", "pets/", "http://a.example/v1/pets/"),
        ("http://a.example/v1?key=1", "p", "http://a.example/v1/p?key=1"),
        ("http://a.example", "초코?#", "http://a.example/%EC%B4%88%EC%BD%94%3F%23"),
        ("http://a.example/v1", "", "http://a.example/v1"),
    ])
    func `base URL and path make one URL`(base: String, path: String, url: String) throws {
        let endpoint = AddPet(baseURL: try #require(URL(string: base)), path: path)
        #expect(try endpoint.url().absoluteString == url)
    }

    @Test func `a query is added to the one that is there`() throws {
        let base = try #require(URL(string: "http://a.example/v1?key=%2F"))
        let endpoint = AddPet(baseURL: base, path: "", query: ["b": "2"])
        #expect(try endpoint.url().absoluteString == "http://a.example/v1?key=%2F&b=2")
    }

    @Test func `a file is nothing for a query`() throws {
        struct Wrong: Encodable, Sendable {
            let picture = FormFile(Data(), filename: "a.png")
        }
        let endpoint = AddPet(baseURL: try #require(URL(string: "http://a.example/")), query: Wrong())
        let error = try #require(throws: UploadError.self) { try endpoint.url() }
        #expect(error.code == .invalidURL)
        #expect(error.message.contains(#""picture" is a file"#))
    }

    private struct Dated: UploadEndpoint {
        struct Response: Decodable, Equatable { let bornAt: Date }

        let baseURL: URL
        let path = ""
        var decoder: JSONDecoder?
        func form() -> MultipartForm { MultipartForm() }
    }

    @Test(arguments: Carrier.allCases)
    func `a response is decoded by the endpoint's decoder, or else by the client's`(carrier: Carrier) async throws {
        let client = UploadClient(transport: carrier.transport())
        client.responses.decoder.keyDecodingStrategy = .convertFromSnakeCase
        let ofEndpoint = JSONDecoder()
        ofEndpoint.dateDecodingStrategy = .secondsSince1970
        ofEndpoint.keyDecodingStrategy = .convertFromSnakeCase
        try await RawServer.run { connection in
            while try await connection.readRequest() != nil {
                try await connection.respond("201 Created", body: #"{"born_at":0}"#)
            }
        } while: { server in
            let byClient = try await client.upload(Dated(baseURL: server.url))
            #expect(byClient.bornAt == Date(timeIntervalSinceReferenceDate: 0))
            let byEndpoint = try await client.upload(Dated(baseURL: server.url, decoder: ofEndpoint))
            #expect(byEndpoint.bornAt == Date(timeIntervalSince1970: 0))
            let response = try await client.upload(MultipartForm(), to: server.url)
            #expect(try response.decode(Dated.Response.self) == byClient)
            #expect(try response.decode(Dated.Response.self, decoder: ofEndpoint) == byEndpoint)
            let other = try await UploadClient(transport: carrier.transport()).upload(MultipartForm(), to: server.url)
            #expect(throws: UploadError.self) { try other.decode(Dated.Response.self) }
        }
    }

    @Test func `the body of a refusal is decoded by the client's decoder`() async throws {
        struct Problem: Decodable { let petName: String }
        let client = UploadClient()
        client.responses.decoder.keyDecodingStrategy = .convertFromSnakeCase
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.respond("422 No", body: #"{"pet_name":"missing"}"#)
        } while: { server in
            let error = try await #require(throws: UploadError.self) {
                try await client.upload(MultipartForm(), to: server.url)
            }
            #expect(try error.response?.decode(Problem.self).petName == "missing")
        }
    }
}
