import Crypto
import Foundation
import PostcardForm
import PostcardReceiver
import PostcardReceivingSupport
import PostcardWire
import PostcardServer
import SystemPackage
import Testing

@Suite(.timeLimit(.minutes(10)))
struct InteroperationTests {
    private static func expect(_ record: UploadRecord, of form: LargeForm) {
        #expect(record.files.count == 1)
        #expect(record.files.first?.size == Int64(form.content.count))
        let digest = SHA256.hash(data: form.content).map { ("0" + String($0, radix: 16)).suffix(2) }.joined()
        #expect(record.files.first?.sha256 == digest)
    }

    @Test(arguments: ResumptionVersion.allCases)
    func `a form in three pieces becomes the record that it is in one, in each version`(
        version: ResumptionVersion
    ) async throws {
        let form = LargeForm(bytes: 600_000)
        try await withCurlSender(version) { sender, receiver in
            let created = try await sender.create(form.bytes[..<100_000], isComplete: false)
            #expect(created.status == 201)
            #expect(created.offset == 100_000)
            #expect(created.isComplete(in: version) == false)
            let location = try #require(created.head.fields["location"])
            let told = created.interim.first { $0.status == 104 }
            // Without a number the client may not know the status.
            #expect(told?.fields["location"] == (version == .newest ? nil : location))
            #expect(told?.fields["upload-draft-interop-version"] == version.interopNumber.map { String($0) })
            #expect((told?.fields["upload-limit"] != nil) == (version.has(.limits) && version != .newest))

            let halfway = try await sender.head(location)
            #expect(halfway.status == 204)
            #expect(halfway.offset == 100_000)
            #expect(halfway.isComplete(in: version) == false)
            #expect(halfway.head.fields["cache-control"] == "no-store")

            let appended = try await sender.append(
                form.bytes[100_000..<300_000], at: 100_000, isComplete: false, to: location)
            #expect(appended.status == (version < .interop7 ? 201 : 204))
            #expect(appended.isComplete(in: version) == false)
            #expect(try receiver.records.isEmpty)

            let last = try await sender.append(form.bytes[300_000...], at: 300_000, isComplete: true, to: location)
            #expect(last.status == 201)
            #expect(last.isComplete(in: version) == true)
            let record = try UploadRecord(json: Data(last.body.utf8))
            Self.expect(record, of: form)
            #expect(last.head.fields["location"] == record.url)

            let done = try await sender.head(location)
            #expect(done.isComplete(in: version) == true)
            #expect(done.offset == Int64(form.bytes.count))
            #expect(done.head.fields["location"] == record.url)

            let again = try await sender.request("GET", location)
            #expect(again.status == 201)
            #expect(again.body == last.body)
            // A success has the limits and the length, whatever the upload became (§4.3.2).
            #expect((again.head.fields["upload-limit"] != nil) == version.has(.limits))
            #expect(again.head.fields["upload-length"] == (version.has(.length) ? "\(form.bytes.count)" : nil))
            #expect(again.head.fields["upload-draft-interop-version"] == version.interopNumber.map { "\($0)" })

            let empty = try await sender.append([], at: Int64(form.bytes.count), isComplete: true, to: location)
            #expect(empty.status == (version.has(.replay) ? last.status : 400))
            #expect(empty.isComplete(in: version) == version.has(.replay))
            if version.has(.replay) { #expect(empty.body == last.body) }
            #expect(try receiver.records == [record.id.text])
        }
    }

    @Test(arguments: ResumptionVersion.allCases)
    func `a form that says that it may be resumed and comes whole is answered as any other`(
        version: ResumptionVersion
    ) async throws {
        try await withCurlSender(version) { sender, receiver in
            let response = try await sender.create(Form.small.utf8, isComplete: true)
            #expect(response.status == 201)
            #expect(response.isComplete(in: version) == true)
            let record = try UploadRecord(json: Data(response.body.utf8))
            #expect(record.fields.map(\.value) == ["value"])
            #expect(try receiver.records == [record.id.text])
        }
    }

    @Test(arguments: ["10", "99", "999999999999999"])
    func `a version that is still to come is served as the newest, without 104`(number: String) async throws {
        let form = LargeForm(bytes: 300_000)
        let named = ["Upload-Draft-Interop-Version: \(number)"]
        try await withCurlSender { sender, receiver in
            let created = try await sender.create(form.bytes[..<100_000], isComplete: false, fields: named)
            #expect(created.status == 201 && created.interim.isEmpty)
            #expect(created.head.fields["upload-limit"]?.contains("max-age") == true)
            #expect(created.head.fields["upload-draft-interop-version"] == nil)
            let location = try #require(created.head.fields["location"])
            let last = try await sender.append(
                form.bytes[100_000...], at: 100_000, isComplete: true, to: location, fields: named)
            #expect(last.status == 201 && last.interim.isEmpty)
            Self.expect(try UploadRecord(json: Data(last.body.utf8)), of: form)
            #expect(try receiver.records.count == 1)
        }
    }

    @Test func `an upload may begin without a byte and end without one`() async throws {
        let form = LargeForm(bytes: 1000)
        try await withCurlSender { sender, receiver in
            let created = try await sender.create([], isComplete: false, fields: ["Upload-Length: \(form.bytes.count)"])
            let location = try #require(created.head.fields["location"])
            #expect(try await sender.head(location).head.fields["upload-length"] == String(form.bytes.count))
            _ = try await sender.append(form.bytes, at: 0, isComplete: false, to: location)
            let last = try await sender.append([], at: Int64(form.bytes.count), isComplete: true, to: location)
            Self.expect(try UploadRecord(json: Data(last.body.utf8)), of: form)
            #expect(try receiver.records.count == 1)
        }
    }

    @Test func `a response is forgotten with the record that it shows`() async throws {
        try await withCurlSender(.interop8) { sender, receiver in
            let created = try await sender.create(Form.small.utf8, isComplete: true)
            let location = try #require(created.interim.first?.fields["location"])
            #expect(try await sender.head(location).status == 204)
            let record = try UploadRecord(json: Data(created.body.utf8))
            #expect(try await sender.request("DELETE", record.url).status == 204)
            #expect(try await sender.head(location).status == 404)
            #expect(receiver.unfinished.isEmpty)
        }
    }

    @Test func `a sender without an idea of it notices nothing`() async throws {
        try await withCurlSender { sender, receiver in
            let plain = try await sender.request("POST", "/uploads", fields: [])
            #expect(plain.status == 415)
            let response = try await receiver.exchange(Form.request(body: Form.small))
            // A 104 would be the first.
            #expect(response.text.hasPrefix("HTTP/1.1 201 "))
            #expect(response.headers.keys.allSatisfy { !$0.hasPrefix("upload-") })
            #expect(receiver.unfinished.isEmpty)
        }
    }

    @Test(arguments: [ResumptionVersion.newest, .interop6, .interop5])
    func `OPTIONS says that uploads can be resumed, and how large they may be`(
        version: ResumptionVersion
    ) async throws {
        try await withCurlSender(version, { $0.uploads.limits.maximumBodyBytes = 4711 }) { sender, _ in
            let response = try await sender.request("OPTIONS", "/uploads")
            #expect(response.status == 204)
            #expect(response.head.fields["accept-patch"] == "application/partial-upload")
            let lifetime = version == .newest ? "max-age" : "expires"
            #expect(
                response.head.fields["upload-limit"]
                    == (version.has(.limits) ? "max-size=4711, \(lifetime)=86400" : nil))
        }
    }

    @Test func `over TLS and HTTP 2 it is the same`() async throws {
        try await withTemporaryDirectory { directory in
            let certificate = try await TestCertificate(in: directory)
            let form = LargeForm(bytes: 300_000)
            try await withCurlSender(.interop8) {
                $0.certificate = ServerCertificate(chain: certificate.chain, privateKey: certificate.privateKey)
            } _: { sender, _ in
                var sender = sender
                sender.options = ["--insecure", "--http2"]
                let created = try await sender.create(form.bytes[..<100_000], isComplete: false)
                #expect(created.interim.contains { $0.status == 104 })
                let location = try #require(created.head.fields["location"])
                let last = try await sender.append(
                    form.bytes[100_000...], at: 100_000, isComplete: true, to: location)
                Self.expect(try UploadRecord(json: Data(last.body.utf8)), of: form)
            }
        }
    }

    @Test(arguments: ["HEAD", "DELETE"])
    func `over HTTP 2 an append that another request ends is reset, and its connection stays`(
        method: String
    ) async throws {
        try await withTemporaryDirectory { directory in
            let certificate = try await TestCertificate(in: directory)
            try await withCurlSender(.interop9) {
                $0.certificate = ServerCertificate(chain: certificate.chain, privateKey: certificate.privateKey)
                $0.uploads.resumption?.progressInterval = .zero
            } _: { sender, receiver in
                var sender = sender
                sender.options = ["--insecure"]
                let location = try #require(try await sender.create([], isComplete: false).head.fields["location"])
                let start: RawStreams.Fields = [
                    (":scheme", "https"), (":authority", "localhost"), (":path", location),
                    ("upload-draft-interop-version", "9"),
                ]
                let append: RawStreams.Fields = [
                    ("content-type", "application/partial-upload"), ("upload-offset", "0"), ("upload-complete", "?0"),
                ]
                try await RawStreams.connect(to: receiver.port) { streams in
                    try await streams.send([(":method", "PATCH")] + start + append, on: 1, endsStream: false)
                    try await streams.send("0123", on: 1, endsStream: false)
                    // The progress shows that the append has begun.
                    try await streams.interimResponse(on: 1)
                    try await streams.send([(":method", method)] + start, on: 3)
                    #expect(try await streams.response(on: 3) == .body(""))
                    guard case .reset = try await streams.response(on: 1) else {
                        Issue.record("The append was not reset.")
                        return
                    }
                    try await streams.send([(":method", "HEAD")] + start, on: 5)
                    #expect(try await streams.response(on: 5) == .body(""))
                }
                #expect(try await sender.head(location).offset == (method == "HEAD" ? 4 : nil))
            }
        }
    }

    @Test func `switched off, a form is received whole and nothing is offered`() async throws {
        try await withCurlSender(.newest, { $0.uploads.resumption = nil }) { sender, receiver in
            let response = try await sender.create(Form.small.utf8, isComplete: true)
            #expect(response.status == 201)
            #expect(response.interim.isEmpty)
            #expect(try await sender.request("OPTIONS", "/uploads").status == 405)
        }
    }
}

extension RunningReceiver {
    /// Where uploads that can be resumed are kept.
    var unfinished: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: directory.appending(".unfinished").string)) ?? []
    }
}
