import Foundation
import Hummingbird
import Logging
import PostcardClient
import PostcardDoctor
import PostcardForm
import PostcardQueue
import PostcardReceiver
import PostcardS3
import PostcardServer
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

// The README's Swift that is not in Snippets, compiled. ReadmeTests checks that it is the same, line by line.

private struct Pet: Decodable {
    let id: String
}

private func app(photos: [URL], url: URL) async throws -> Pet {
    var form = MultipartForm()
    form.append("초코", named: "name")
    form.append(filesAt: photos, named: "petImage")
    let response = try await UploadClient().upload(form, to: url) { progress in
        print(progress.fraction ?? 0)
    }
    let pet = try response.decode(Pet.self)
    return pet
}

private func queued(_ form: MultipartForm, to url: URL, in folder: URL) async throws {
    let queue = UploadQueue(directory: folder.appending(path: "uploads"))
    try await queue.enqueue(form, to: url)
    try await queue.run(UploadClient())
}

private actor Account {
    func freshToken() async throws -> String { "token" }
}

private func show(_ shown: (any Sendable)?..., isSafeToSendAgain: Bool = true) {}

private func followed(_ form: MultipartForm, to url: URL, as account: Account) async throws -> Pet? {
    var client = UploadClient(retry: RetryPolicy(maximumAttempts: 4))
    client.interceptors = [BearerTokenInterceptor { _ in try await account.freshToken() }]

    for try await event in client.events(of: form, to: url) {
        switch event {
        case .sending(let progress): show(progress.fraction, progress.timeRemaining)
        case .retrying(let retry): show(retry.error)
        case .done(let response): return try response.decode(Pet.self)
        default: break
        }
    }
    return nil
}

private func explained(_ client: UploadClient, _ form: MultipartForm, to url: URL) async throws {
    do {
        try await client.upload(form, to: url)
    } catch let error as UploadError {
        show(error.message, error.advice, isSafeToSendAgain: error.delivery == .neverArrived)
    }
}

struct Greeting: Codable {
    var name: String
    var pictures: [FormFile]
}

private func encoded(photos: [URL]) throws -> MultipartForm {
    let greeting = Greeting(name: "초코", pictures: photos.map { FormFile(at: $0) })
    let form = try MultipartForm(encoding: greeting)
    return form
}

private func server() async throws {
    let router = Router()
    router.addUploads(to: try LocalUploadStore(directory: "received"))
    try await Application(router: router, server: .uploads()).runService()
}

private func uploader(request: URLRequest, body: Data) {
    let explanation = Explanation(headerFields: request.allHTTPHeaderFields, body: body)
    #expect(explanation.isWellFormed)
}

private func presigning(for router: Router<BasicRequestContext>) async throws {
    let store = try await S3UploadStore.open(S3Bucket("s3://uploads/forms"))
    var options = PresignedFormOptions()
    options.contentTypes = [.anyImage]
    options.maximumBytes = 20 << 20
    try router.addPresignedForms(of: store, options: options)
    let sweep = StoreSweep(of: store, logger: Logger(label: "uploads"))
    try await Application(router: router, server: .uploads(), services: [sweep]).runService()
}

private struct PetAPI: Sendable {
    func newPresignedForm() async throws -> PresignedForm { throw CancellationError() }
    func report(key: String?, etag: String?) async throws {}
}

private func presigned(_ form: MultipartForm, _ answer: Data, by client: UploadClient, _ api: PetAPI) async throws {
    let presigned = try JSONDecoder().decode(PresignedForm.self, from: answer)
    let object = try await client.upload(form, with: presigned) { try await api.newPresignedForm() }
    try await api.report(key: object.key, etag: object.etag)
}
