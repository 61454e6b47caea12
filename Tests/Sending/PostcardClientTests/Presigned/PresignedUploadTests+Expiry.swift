import Foundation
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Testing

/// Forms that expire, and the new ones that replace them.
extension PresignedUploadTests {
    @Test(arguments: Carrier.allCases)
    func `an expired form is replaced before anything is sent`(carrier: Carrier) async throws {
        try await Responses.run([("204 No Content", [:])]) { server in
            let old = Presigned.form(to: server.url, expiration: Presigned.earlier)
            // Also a form that seems to have expired at once: then the clock is wrong, and the store decides.
            let new = Server {
                Presigned.form(to: server.url, expiration: Presigned.earlier, adding: ["x-ignore-n": "2"])
            }
            let client = UploadClient(transport: carrier.transport())
            try await client.upload(Self.form(), with: old, refreshing: { new.refresh() })
            #expect(new.count == 1)
            #expect(
                server.requests.whole.map { String(decoding: $0.body, as: UTF8.self).contains("x-ignore-n") } == [true])
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a form that the store calls expired is replaced once`(carrier: Carrier) async throws {
        let expired = Self.error("AccessDenied", "Invalid according to Policy: Policy expired.")
        for isNewAccepted in [true, false] {
            try await RawServer.run { connection in
                while let request = try await connection.readRequest() {
                    let isNew = String(decoding: request.body, as: UTF8.self).contains("x-ignore-n")
                    if isNew && isNewAccepted {
                        try await connection.respond("204 No Content")
                    } else {
                        try await connection.respond("403 Forbidden", body: expired)
                    }
                }
            } while: { server in
                let new = Server { Presigned.form(to: server.url, adding: ["x-ignore-n": "2"]) }
                let client = UploadClient(transport: carrier.transport())
                let old = Presigned.form(to: server.url)
                if isNewAccepted {
                    try await client.upload(Self.form(), with: old, refreshing: { new.refresh() })
                } else {
                    let error = try await #require(throws: UploadError.self) {
                        try await client.upload(Self.form(), with: old, refreshing: { new.refresh() })
                    }
                    #expect(error.objectStoreProblem?.isExpiration == true)
                    #expect(error.advice?.hasPrefix("The form has expired.") == true)
                }
                #expect(new.count == 1)
                #expect(server.requests.whole.count == 2)
            }
        }
    }

    @Test func `a form that may have arrived before it expired may have arrived when the new one cannot be sent`()
        async throws
    {
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            // The response to the first is lost, and the second is called expired.
            if connection.number > 0 {
                try await connection.respond("403 Forbidden", body: Self.error("AccessDenied", "Policy expired."))
            }
        } while: { server in
            let client = UploadClient(
                transport: Carrier.asyncHTTP.transport(), retryPolicy: .withoutDelays(maximumAttempts: 2))
            let closed = try #require(URL(string: "http://127.0.0.1:1/"))
            let error = try await #require(throws: UploadError.self) {
                try await client.upload(Self.form(), with: Presigned.form(to: server.url)) {
                    Presigned.form(to: closed)
                }
            }
            #expect(error.code == .connectionFailed && error.delivery == .responseLost, "\(error)")
        }
    }

    @Test func `the refusal of a stream that can be read only once is the upload's error`() async throws {
        try await RawServer.run { connection in
            while try await connection.readRequest() != nil {
                try await connection.respond("403 Forbidden", body: Self.error("AccessDenied", "Policy expired."))
            }
        } while: { server in
            let chunks = AsyncStream<Data> { continuation in
                continuation.yield(Data("content".utf8))
                continuation.finish()
            }
            var form = MultipartForm()
            form.append(FormStream(chunks, length: 7), named: "file", filename: "a.bin")
            let new = Server { Presigned.form(to: server.url) }
            let sent = form
            let error = try await #require(throws: UploadError.self) {
                try await UploadClient().upload(
                    sent, with: Presigned.form(to: server.url), refreshing: { new.refresh() })
            }
            #expect(error.objectStoreProblem?.isExpiration == true && error.message.contains("only once"), "\(error)")
            #expect(new.count == 0)
        }
    }

    @Test func `a new form is waited for until the total timeout of the upload`() async throws {
        try await Responses.run([("403 Forbidden", [:])]) { server in
            var client = UploadClient()
            client.timeouts.total = .milliseconds(500)
            let hurried = client
            let old = Presigned.form(to: server.url, expiration: Presigned.earlier)
            let error = try await #require(throws: UploadError.self) {
                try await hurried.upload(Self.form(), with: old) {
                    try await Task.sleep(for: .seconds(3600))
                    return old
                }
            }
            #expect(error.code == .deadlinePassed && server.requests.heads.isEmpty, "\(error)")
        }
    }

    @Test func `the time for an upload does not start over with a new form`() async throws {
        try await RawServer.run { connection in
            while let request = try await connection.readRequest() {
                let isNew = String(decoding: request.body, as: UTF8.self).contains("x-ignore-n")
                try await connection.respond(
                    isNew ? "503 Slow Down" : "403 Forbidden",
                    body: isNew ? Self.error("SlowDown", "") : Self.error("AccessDenied", "Policy expired."))
            }
        } while: { server in
            var policy = RetryPolicy.withoutDelays(maximumAttempts: 3)
            policy.deadline = .seconds(3600)
            let transport = JumpingTransport()
            let client = UploadClient(transport: transport, retryPolicy: policy)
            let error = try await #require(throws: UploadError.self) {
                try await client.upload(Self.form(), with: Presigned.form(to: server.url)) {
                    transport.clock.jump(.seconds(7200))
                    return Presigned.form(to: server.url, adding: ["x-ignore-n": "2"])
                }
            }
            #expect(error.message.contains("more than 3600 seconds after the first"), "\(error)")
            #expect(server.requests.whole.count == 2)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `no form is asked for after any other refusal, and the error of a refresh is the upload's`(
        carrier: Carrier
    ) async throws {
        struct Trouble: Error {}
        try await RawServer.run { connection in
            while try await connection.readRequest() != nil {
                try await connection.respond("403 Forbidden", body: Self.error("SignatureDoesNotMatch", "No."))
            }
        } while: { server in
            let client = UploadClient(transport: carrier.transport())
            let new = Server { Presigned.form(to: server.url) }
            let error = try await #require(throws: UploadError.self) {
                try await client.upload(
                    Self.form(), with: Presigned.form(to: server.url), refreshing: { new.refresh() })
            }
            #expect(error.objectStoreProblem?.code == "SignatureDoesNotMatch")
            #expect(error.delivery == .refused)
            #expect(new.count == 0)
            let old = Presigned.form(to: server.url, expiration: Presigned.earlier)
            await #expect(throws: Trouble.self) {
                try await client.upload(Self.form(), with: old, refreshing: { throw Trouble() })
            }
            #expect(server.requests.whole.count == 1)
        }
    }
}
