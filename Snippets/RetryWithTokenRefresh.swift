// Retries failures that may be temporary, and gets a fresh token when the server asks for one. Waiting uploads share
// it.
import Foundation
import PostcardClient

/// A stand-in for the app's own account.
actor Account {
    func freshToken() async throws -> String { "token" }
}

let account = Account()
var client = UploadClient(retryPolicy: RetryPolicy(maximumAttempts: 5, deadline: .seconds(120)))
client.interceptors = [BearerTokenInterceptor { _ in try await account.freshToken() }]

guard let url = URL(string: "http://127.0.0.1:8080/uploads") else { exit(64) }
var form = MultipartForm()
form.append(filesAt: CommandLine.arguments.dropFirst().map { URL(filePath: $0) }, named: "petImage")
let response = try await client.upload(form, to: url)
print(response.status, "after", response.attempts, "attempts")
