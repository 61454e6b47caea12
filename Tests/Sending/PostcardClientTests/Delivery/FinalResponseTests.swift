import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Synchronization
import Testing

/// Servers of resumable uploads whose responses end the upload, or contradict earlier ones.
@Suite(.timeLimit(.minutes(10))) struct FinalResponseTests {
    private static func form(in folder: TemporaryFolder) throws -> MultipartForm {
        var form = MultipartForm()
        form.append(fileAt: try folder.file("a.jpg", size: 10_000), named: "image")
        return form
    }

    /// Sends a form to a server that creates upload resources, and answers other requests as it likes.
    ///
    /// - Parameter respond: Answers HEAD and PATCH, given the number of earlier ones; returns whether the connection
    ///   stays open.
    /// - Returns: The methods of all requests, and the error of the upload.
    private static func upload(
        _ carrier: Carrier, retries: Int = 0,
        _ respond: @escaping @Sendable (RawConnection, RawRequest, Int) async throws -> Bool
    ) async throws -> (methods: [String], error: UploadError) {
        let folder = try TemporaryFolder()
        let form = try form(in: folder)
        let count = Mutex(0)
        return try await RawServer.run { connection in
            while let request = try await connection.readRequest() {
                switch request.method {
                case "OPTIONS":
                    try await connection.respond("204 No Content", ["Accept-Patch": "application/partial-upload"])
                case "POST":
                    try await connection.respond("201 Created", ["Location": "/uploads/a", "Upload-Complete": "?0"])
                case "DELETE": try await connection.respond("204 No Content")
                default:
                    let number = count.withLock { count in
                        count += 1
                        return count - 1
                    }
                    guard try await respond(connection, request, number) else { return }
                }
            }
        } while: { server in
            var client = ResumptionTests.client(carrier)
            client.retryPolicy = .withoutDelays(maximumAttempts: retries + 1)
            let sender = client
            let error = try await #require(throws: UploadError.self) {
                try await sender.upload(form, to: server.url)
            }
            return (server.requests.whole.map(\.method), error)
        }
    }

    @Test(arguments: Carrier.allCases, [0, 2])
    func `a busy server that has the whole form gets it as often as the ordinary policy says`(
        carrier: Carrier, retries: Int
    ) async throws {
        let (methods, error) = try await Self.upload(carrier, retries: retries) { connection, _, _ in
            try await connection.respond("503 Service Unavailable", ["Upload-Complete": "?1"])
            return true
        }
        #expect(error.response?.status.code == 503 && error.attempts == retries + 1)
        #expect(methods == ["OPTIONS"] + [[String]](repeating: ["POST", "PATCH"], count: retries + 1).flatMap(\.self))
    }

    @Test(arguments: Carrier.allCases)
    func `a server that moves its offset back is left, and its resource is deleted`(carrier: Carrier) async throws {
        let (methods, error) = try await Self.upload(carrier) { connection, request, number in
            guard request.method == "HEAD" else { return false }
            let offset = number == 1 ? 5_000 : 4_999
            try await connection.respond("204 No Content", ["Upload-Offset": "\(offset)", "Upload-Complete": "?0"])
            return true
        }
        #expect(error.code == .refused)
        #expect(error.message.contains("has 4999 bytes of the form, after it had acknowledged 5000"), "\(error)")
        #expect(methods == ["OPTIONS", "POST", "PATCH", "HEAD", "PATCH", "HEAD", "DELETE"])
    }

    @Test(arguments: Carrier.allCases)
    func `a server that accepts each append and takes a byte of it is left after five`(carrier: Carrier) async throws {
        let offset = Mutex(0)
        let (methods, error) = try await Self.upload(carrier) { connection, request, _ in
            let offset = offset.withLock { offset in
                if request.method == "PATCH" { offset += 1 }
                return offset
            }
            try await connection.respond("200 OK", ["Upload-Offset": "\(offset)", "Upload-Complete": "?0"])
            return true
        }
        #expect(error.code == .refused && error.delivery == .responseLost)
        let pairs = [[String]](repeating: ["PATCH", "HEAD"], count: 4).flatMap(\.self)
        #expect(methods == ["OPTIONS", "POST"] + pairs + ["PATCH"])
    }
}
