import Foundation
import HTTPTypes
import PostcardTesting
import Testing

@Suite struct SnapshotTests {
    @Test func `a snapshot is the same in each run`() async throws {
        let server = TestServer(.created(["id": "7"]), .created(["id": "7"]))
        let url = try #require(URL(string: "https://api.example.com/pets"))
        for _ in 0..<2 {
            var form = MultipartForm()
            form.append("초코 \"the\"\nsecond", named: "name")
            form.append("{}", named: "extra", contentType: .json)
            form.append(PetAPI.photo, named: "petImage", filename: "cat.jpg", contentType: .jpeg)
            form.append(Data([0, 1, 2]), named: "raw", filename: "a.bin")
            let fields: HTTPFields = [.authorization: "Bearer secret", .accept: "application/json"]
            try await UploadClient(transport: server, retryPolicy: RetryPolicy(maximumAttempts: 2))
                .upload(form, to: url, method: .put, headerFields: fields)
        }
        let snapshots = server.uploads.map(\.snapshot)
        #expect(snapshots[0] == snapshots[1])
        #expect(
            snapshots[0] == """
                url = "https://api.example.com/pets"
                request = "PUT"
                # header = "Authorization: …"
                # header = "Accept: application/json"
                form-string = "name=초코 \\"the\\"\\nsecond"
                form = "extra=\\"{}\\";type=application/json"
                # 9 bytes, sha256 644be5747c5b808bc40eb1392fb4fe331ec5cee053d3fa8e2482d3424238e11b, without a position
                form = "petImage=@cat.jpg;type=image/jpeg"
                # 3 bytes, sha256 ae4b3280e56e2faf83f414a6e3dabe9d5fbe18976544c05fed121accb85b53fc
                form = "raw=@a.bin;type=application/octet-stream"

                """)
    }
}
