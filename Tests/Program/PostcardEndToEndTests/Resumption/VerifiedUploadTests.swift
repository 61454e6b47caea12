import PostcardClient
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Testing

/// Uploads with digests (RFC 9530) to `postcard serve`.
@Suite(.timeLimit(.minutes(10))) struct VerifiedUploadTests {
    @Test(arguments: Carrier.allCases, [false, true])
    func `an upload with digests is verified if the receiver reports the same`(
        carrier: Carrier, isResumable: Bool
    ) async throws {
        let folder = try TemporaryFolder()
        let file = try folder.file("film.mov", size: 3_000_000)
        let receiver = try await ReceivingServer()
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append(fileAt: file, named: "film")
        var client = UploadClient(transport: carrier.transport())
        if isResumable { client.resumption = ResumptionPolicy() }
        for sendsDigests in [true, false] {
            client.responses.sendsDigests = sendsDigests
            let response = try await client.upload(form, to: receiver.uploads)
            #expect(response.isVerified == sendsDigests)
        }
        #expect(try await receiver.end().records.count == 2)
    }
}
