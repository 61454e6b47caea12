import Crypto
import Foundation
import HTTPTypes
import Hummingbird
import PostcardClient
import PostcardForm
import PostcardQueue
import PostcardReception
import PostcardServer
import PostcardStore

// The Swift of articles on sending, other services, rules and strangers, compiled. DocumentationTests checks that it is
// the same, line by line.

// MARK: - PostcardClient

private func sent(photos: [URL], to url: URL) async throws -> Pet {
    var form = MultipartForm()
    form.append("초코", named: "name")
    form.append(filesAt: photos, named: "petImage")
    let pet = try await UploadClient().upload(form, to: url) { progress in
        print(progress.fraction ?? 0)
    }.decode(Pet.self)
    return pet
}

actor Account {
    func freshToken() async throws -> String { "token" }
}

private func show(_ shown: (any Sendable)?...) {}

private func followed(_ form: MultipartForm, to url: URL, as account: Account) async throws -> Pet? {
    var client = UploadClient(retryPolicy: RetryPolicy(maximumAttempts: 4))
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

private func queued(_ form: MultipartForm, to url: URL, in folder: URL) async throws {
    let queue = UploadQueue(directory: folder.appending(path: "uploads"))
    try await queue.enqueue(form, to: url)
    try await queue.run(UploadClient())
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

struct NewPet: Decodable {
    var name: String
    var petImage: [FormFile]
}

private struct StoredPet: ResponseCodable, Sendable {
    let id: String
}

/// A stand-in for a table whose column of keys is unique.
private actor PetTable {
    func find(_ key: String) throws -> StoredPet? { nil }
    func insertOrFind(_ pet: NewPet, _ key: String) throws -> StoredPet { StoredPet(id: key) }
}

private func keyed(_ pets: PetTable, _ router: Router<BasicRequestContext>) {
    router.post("pets") { request, _ in
        let key = HTTPField.Name("Idempotency-Key").flatMap { request.headers[$0] } ?? UUID().uuidString
        if let pet = try await pets.find(key) { return pet }
        let pet = try await request.decodeForm(NewPet.self)
        return try await pets.insertOrFind(pet, key)
    }
}

private func received(
    _ head: HTTPRequest, _ body: AsyncThrowingStream<Data, any Error>, from address: String
) async throws -> FormReceiver.Response {
    let receiver = FormReceiver(store: try LocalUploadStore(directory: "received"))
    // In the handler of your server, for all requests below /uploads:
    let response = await receiver.respond(to: head, body, from: address)
    return response
}

actor PetNumbers {
    func insertOrFind(_ id: String, _ fields: [UploadRecord.Field]) async throws -> Int { 1 }
}

struct NewPetResponse: ResponseCodable {
    let number: Int
    let pictures: [String]
}

private func responded(_ router: Router<BasicRequestContext>, _ store: LocalUploadStore, _ pets: PetNumbers) {
    router.addUploads(to: store) { upload, _, _ in
        let number = try await pets.insertOrFind(upload.record.id.text, upload.record.fields)
        return NewPetResponse(number: number, pictures: upload.record.files.map(\.url))
    }
}

func photoServer(token: String, pets: PetNumbers) throws -> some ApplicationProtocol {
    var options = UploadOptions()
    options.path = "/photos"
    options.rules = try FormRules(
        fields: ["name": .init(atLeast: 1, maximumCharacters: 80)],
        files: ["petImage": .init(atLeast: 1, atMost: 5, maximumBytes: 20 << 20, types: [.anyImage])])
    let store = try LocalUploadStore(directory: "received")

    let router = Router()
    router.add(middleware: ProblemMiddleware())
    router.add(middleware: BearerTokenMiddleware([token]))
    router.addUploads(to: store, options: options) { upload, _, _ in
        let number = try await pets.insertOrFind(upload.record.id.text, upload.record.fields)
        return NewPetResponse(number: number, pictures: upload.record.files.map(\.url))
    }
    return Application(router: router, server: .uploads())
}

private struct Callbacks {
    @discardableResult
    func upload(
        _ form: MultipartForm, to url: URL, completion: @escaping @MainActor (Result<UploadResponse, any Error>) -> Void
    ) -> Task<Void, Never> {
        Task { @MainActor in
            do {
                completion(.success(try await UploadClient().upload(form, to: url)))
            } catch {
                completion(.failure(error))
            }
        }
    }
}

private func moved(_ photo: URL, to url: URL) async throws -> UploadResponse {
    var form = MultipartForm()
    form.append("초코", named: "name")
    form.append(fileAt: photo, named: "petImage")
    let response = try await UploadClient().upload(form, to: url)
    return response
}

/// What AIEndpointTests sends to a service, and receives as one.
struct Transcription: UploadEndpoint {
    struct Response: Decodable, Sendable {
        let text: String
    }

    let baseURL: URL
    let path = "audio/transcriptions"
    let recording: URL

    func form() throws -> MultipartForm {
        var form = MultipartForm()
        form.append("gpt-transcribe", named: "model")
        form.append(fileAt: recording, named: "file")
        return form
    }

    static func rules() throws -> FormRules {
        try FormRules(
            files: [
                "file": .init(
                    atLeast: 1, maximumBytes: 25_000_000,
                    types: [
                        "audio/flac", "audio/mp4", "audio/mpeg", "audio/ogg", "audio/wav", "audio/webm",
                        "application/ogg", "video/mp4", "video/mpeg", "video/webm",
                    ])
            ], otherParts: .allowed)
    }
}

func transcribed(_ recording: URL, by service: URL, of account: Account) async throws -> Transcription.Response {
    var client = UploadClient(retryPolicy: RetryPolicy(maximumAttempts: 3))
    client.interceptors = [BearerTokenInterceptor { _ in try await account.freshToken() }]
    client.rules = try Transcription.rules()
    let transcript = try await client.upload(Transcription(baseURL: service, recording: recording))
    return transcript
}

struct PictureEdit: UploadEndpoint {
    struct Response: Decodable, Sendable {
        struct Picture: Decodable, Sendable {
            let base64: String

            enum CodingKeys: String, CodingKey { case base64 = "b64_json" }
        }

        let data: [Picture]
    }

    let baseURL: URL
    let path = "images/edits"
    let prompt: String
    let pictures: [URL]

    func form() throws -> MultipartForm {
        var form = MultipartForm()
        form.append("gpt-image-2", named: "model")
        form.append(prompt, named: "prompt")
        form.append(filesAt: pictures, named: "image[]")
        return form
    }
}

struct ReceivedEdit: Decodable {
    var model: String
    var prompt: String
    var image: [FormFile]
}

func addEdits(
    to router: Router<BasicRequestContext>, _ edited: @escaping @Sendable (ReceivedEdit) async throws -> Data
) {
    router.post("v1/images/edits") { request, _ in
        let edit = try await request.decodeForm(ReceivedEdit.self)
        return ["data": [["b64_json": try await edited(edit).base64EncodedString()]]]
    }
}

/// A stand-in for what the generator makes.
private enum Components {
    enum Schemas {
        struct Pet: Codable {
            var name: String
        }
    }
}

private func generated(_ pet: Components.Schemas.Pet, _ photos: [URL], _ server: URL) async throws -> String {
    var form = MultipartForm()
    form.append(pet.name, named: "name")
    form.append(filesAt: photos, named: "pictures")
    let stored = try await UploadClient().upload(form, to: server.appending(path: "pets"))
        .decode(Components.Schemas.Pet.self)
    return stored.name
}

// MARK: - PostcardForm

func rulesOfTheArticle() throws -> FormRules {
    let rules = try FormRules(
        fields: ["name": .init(atLeast: 1, maximumCharacters: 80)],
        files: ["petImage": .init(atMost: 5, maximumBytes: 5_000_000, types: [.anyImage])])
    return rules
}

// MARK: - PostcardQueue

private func described(_ queue: UploadQueue) async {
    print(await queue.diagnostics())
}

// MARK: - PostcardServer

private func limited() -> (UploadOptions, ConnectionOptions) {
    var options = UploadOptions()
    options.limits.maximumFileBytes = 20 << 20
    options.limits.maximumBodyBytes = 100 << 20
    options.limits.maximumParts = 10
    options.limits.maximumFieldBytes = 10_000
    options.resumption?.maximumUnfinishedBytes = 10 << 30
    var connections = ConnectionOptions()
    connections.minimumBytesPerSecond = 1_000
    return (options, connections)
}

private func guarded(_ router: Router<BasicRequestContext>, by token: String, _ store: LocalUploadStore) {
    router.add(middleware: BearerTokenMiddleware([token]))
    router.addUploads(to: store)
}

private func listed() async throws {
    let store = try LocalUploadStore(directory: "received")
    for id in try await store.identifiers(limit: 10, after: nil) {
        guard let record = try await store.record(id) else { continue }
        print(record.id, record.fields.map(\.name), record.files.map(\.filename))
    }
}

/// A stand-in for a service that keeps bytes.
actor FilmBucket {
    private(set) var count = 0

    func append(_ bytes: ByteBuffer) throws { count += bytes.readableBytes }
}

/// Reads forms as in a framework other than Hummingbird.
struct FormsElsewhere {
    let bucket = FilmBucket()

    func pet(
        of body: some AsyncSequence<ByteBuffer, any Error> & Sendable, contentType: String
    ) async throws -> NewPet {
        let form = try await ReceivedForm(of: body.map { Data($0.readableBytesView) }, contentType: contentType)
        return try FormDecoder().decode(NewPet.self, from: form)
    }

    func keep(_ body: some AsyncSequence<ByteBuffer, any Error> & Sendable, contentType: String) async throws {
        let rules = try FormRules(files: ["film": .init(atLeast: 1, types: [.any])], otherParts: .allowed)
        let pieces = body.map { Data($0.readableBytesView) }
        for try await part in try FormParts(of: pieces, contentType: contentType, rules: rules) {
            for try await piece in part { try await bucket.append(ByteBuffer(bytes: piece)) }
        }
    }
}
