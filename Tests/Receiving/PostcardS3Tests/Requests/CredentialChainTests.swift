import Foundation
import PostcardTestSupport
import Testing

@testable import PostcardS3

struct CredentialChainTests {
    private static let none = ["HOME": "/nonexistent", "AWS_EC2_METADATA_DISABLED": "true"]

    /// Answers by address, as the services of containers and instances do.
    private func chain(
        _ environment: [String: String], _ answers: [String: String] = [:]
    ) -> CredentialChain {
        CredentialChain(environment: Self.none.merging(environment) { $1 }) { request in
            let header = request.headers.map { " \($0.name): \($0.value)" }.joined()
            guard let answer = answers["\(request.method) \(request.url)\(header)"] else {
                throw S3Error.unusableCredentials("No answer for \(request.method) \(request.url)\(header)")
            }
            return Array(answer.utf8)
        }
    }

    private func files(
        credentials: String = "", config: String = "", _ body: ([String: String]) async throws -> Void
    ) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "postcard-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try Data(credentials.utf8).write(to: folder.appending(path: "credentials"))
        try Data(config.utf8).write(to: folder.appending(path: "config"))
        try await body([
            "AWS_SHARED_CREDENTIALS_FILE": folder.path + "/credentials", "AWS_CONFIG_FILE": folder.path + "/config",
        ])
    }

    @Test func `the environment comes first`() async throws {
        try await files(credentials: "[default]\naws_access_key_id=F\naws_secret_access_key=G\n") { files in
            let variables = ["AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "B", "AWS_SESSION_TOKEN": "C"]
            let found = try await chain(files.merging(variables) { $1 }).credentials()
            #expect(found == S3Credentials(accessKeyID: "A", secretAccessKey: "B", sessionToken: "C"))
            #expect(try await chain(files).credentials().accessKeyID == "F")
        }
    }

    @Test func `a profile is read from both files`() async throws {
        let config = """
            # a comment
            [default]
            region = eu-west-1
            [profile "other"] ; another
            s3 =
              max_concurrent_requests = 20
            aws_access_key_id = A # of the config
            aws_secret_access_key = B=+/
            region = us-west-2
            """
        try await files(credentials: "[other]\naws_access_key_id = C\n", config: config) { files in
            let chain = chain(files.merging(["AWS_PROFILE": "other"]) { $1 })
            let found = try await chain.credentials()
            #expect(found.accessKeyID == "C")
            #expect(found.secretAccessKey == "B=+/")
            #expect(chain.region == "us-west-2")
            #expect(self.chain(files).region == "eu-west-1")
            #expect(self.chain(files.merging(["AWS_REGION": "x"]) { $1 }).region == "x")
        }
    }

    @Test(arguments: [
        (["AWS_ACCESS_KEY_ID": "A"], "", "AWS_SECRET_ACCESS_KEY is not"),
        (["AWS_PROFILE": "missing"], "", "the profile missing, which no file has"),
        ([:], "[default]\ncredential_process = x\n", "uses credential_process"),
        ([:], "[default]\nrole_arn = x\n", "uses role_arn"),
        ([:], "[default]\nsso_session = x\n", "uses sso_session"),
        ([:], "", "There are no credentials"),
        (["AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://elsewhere.example/x"], "", "neither HTTPS nor"),
    ])
    func `what cannot be used is named`(variables: [String: String], config: String, message: String) async throws {
        try await files(config: config) { files in
            do {
                let found = try await chain(files.merging(variables) { $1 }).credentials()
                Issue.record("There are credentials: \(found)")
            } catch let error as S3Error {
                #expect(error.message.contains(message))
                #expect(error.advice != nil)
            }
        }
    }

    private static let answer =
        #"{"AccessKeyId":"A","SecretAccessKey":"B","Token":"C","Expiration":"2030-01-01T00:00:00Z"}"#
    private static let found = S3Credentials(
        accessKeyID: "A", secretAccessKey: "B", sessionToken: "C", expires: Date(timeIntervalSince1970: 1_893_456_000))

    @Test func `a container's service answers with temporary credentials`() async throws {
        let relative = chain(
            ["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/x", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "T"],
            ["GET http://169.254.170.2/v2/x Authorization: T": Self.answer])
        #expect(try await relative.credentials() == Self.found)
        let full = chain(
            ["AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1"],
            ["GET http://169.254.170.23/v1": Self.answer])
        #expect(try await full.credentials() == Self.found)
    }

    @Test func `an instance's service is asked with a token`() async throws {
        let root = "http://169.254.169.254/latest"
        let field = " X-aws-ec2-metadata-token: T"
        let chain = chain(
            ["AWS_EC2_METADATA_DISABLED": ""],
            [
                "PUT \(root)/api/token X-aws-ec2-metadata-token-ttl-seconds: 300": "T",
                "GET \(root)/meta-data/iam/security-credentials/\(field)": "role\n",
                "GET \(root)/meta-data/iam/security-credentials/role\(field)": Self.answer,
            ])
        #expect(try await chain.credentials() == Self.found)
    }

    @Test func `temporary credentials are fetched again before they end, once for all that wait`() async throws {
        let fetches = Fetches()
        let current = CurrentCredentials(
            .automatic(
                environment: Self.none.merging(["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/x"]) { $1 })
        ) { _ in
            await fetches.add()
            return Array(Self.answer.utf8)
        }
        let end = Date(timeIntervalSince1970: 1_893_456_000)
        try await withThrowingTaskGroup { group in
            for _ in 0..<20 { group.addTask { _ = try await current.value(now: end - 3600) } }
            try await group.waitForAll()
        }
        #expect(await fetches.count == 1)
        _ = try await current.value(now: end - 100)
        #expect(await fetches.count == 2)
    }

    private actor Fetches {
        private(set) var count = 0
        func add() { count += 1 }
    }

    @Test func `credentials do not show their secret`() {
        let credentials = S3Credentials(accessKeyID: "A", secretAccessKey: "secret", sessionToken: "token")
        #expect("\(credentials)" == "A")
    }
}
