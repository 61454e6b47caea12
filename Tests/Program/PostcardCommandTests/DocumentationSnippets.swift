import Foundation
import HTTPTypes
import Hummingbird
import Logging
import PostcardClient
import PostcardForm
import PostcardPictures
import PostcardQueue
import PostcardReceiver
import PostcardS3
import PostcardServer
import SystemPackage
import Tracing

// The Swift of the documentation's articles that is neither in Snippets nor in the README, compiled. DocumentationTests
// checks that it is the same, line by line.

// MARK: - PostcardClient

private func sent(photo: URL, to url: URL) async throws -> Pet {
    let form = MultipartForm(.text("초코", named: "name"), .file(at: photo, named: "petImage"))
    let pet = try await UploadClient().upload(form, to: url, as: Pet.self) { progress in
        print(progress.fraction ?? 0)
    }
    return pet
}

private func sent(_ form: MultipartForm, to url: URL) async throws {
    let client = UploadClient()
    let response = try await client.upload(form, to: url)
    print(response.status)
}

@MainActor private final class ViewModel {
    private var fraction = 0.0

    func follow(_ form: MultipartForm, to url: URL, by client: UploadClient) async throws {
        try await client.upload(form, to: url) { progress in
            self.fraction = progress.fraction ?? 0
            for part in progress.parts { print(part.filename ?? part.name, part.fraction ?? 0) }
        }
    }
}

private func traced(_ form: MultipartForm, to url: URL, by client: UploadClient, _ tracer: any Tracer) async throws {
    InstrumentationSystem.bootstrap(tracer)
    let response = try await withSpan("share a picture") { _ in
        try await client.upload(form, to: url)
    }
    print(response.status)
}

private func configured() -> UploadClient {
    var client = UploadClient(timeouts: UploadTimeouts(idle: .seconds(30)))
    client.network.allowed = .unmetered
    client.network.rateLimit = RateLimit(bytesPerSecond: 500_000)
    client.responses.acceptedStatuses = [201]
    client.reporting.logger = Logger(label: "pets")
    return client
}

struct RenamePet: UploadEndpoint {
    struct Response: Decodable, Sendable {
        let id: String
    }

    let baseURL: URL
    let id: String
    let name: String
    var path: String { "pets/\(id)" }
    let method = HTTPRequest.Method.put

    func form() throws -> MultipartForm {
        var form = MultipartForm()
        form.append(name, named: "name")
        return form
    }
}

private func continuing() -> UploadClient {
    var client = UploadClient(retryPolicy: RetryPolicy(maximumAttempts: 4))
    client.resumption = ResumptionPolicy()
    return client
}

private func renamed(_ pet: Pet, at api: URL, by client: UploadClient) async throws -> String {
    let renamed = try await client.upload(RenamePet(baseURL: api, id: pet.id, name: "초코"))
    return renamed.id
}

private func sent(_ form: MultipartForm, of draft: UUID, to url: URL, by client: UploadClient) async throws {
    try await client.upload(form, to: url, headerFields: [.idempotencyKey: "\"\(draft.uuidString)\""])
}

private struct PetAPI: Sendable {
    func newPresignedForm() async throws -> PresignedForm { throw CancellationError() }
    func newPresignedForm(for pet: String?) async throws -> PresignedForm { throw CancellationError() }
    func report(key: String?, etag: String?) async throws {}
}

private func presigned(_ photo: URL, _ json: Data, _ api: PetAPI) async throws {
    let presigned = try JSONDecoder().decode(PresignedForm.self, from: json)
    var form = MultipartForm()
    form.append(fileAt: photo, named: "file")
    let object = try await UploadClient().upload(form, with: presigned) { try await api.newPresignedForm() }
    try await api.report(key: object.key, etag: object.etag)
}

private func presigned(
    _ form: MultipartForm, _ presigned: PresignedForm, of pet: String, in queue: UploadQueue, _ api: PetAPI
) async throws {
    try await queue.enqueue(form, with: presigned, tag: pet)
    var options = QueueOptions()
    options.presignedForm = { upload in try await api.newPresignedForm(for: upload.tag(as: String.self)) }
    try await queue.run(UploadClient(), options: options)
}

private func presignedInTheBackground(_ api: PetAPI) -> BackgroundSession {
    var session = BackgroundSession(identifier: "com.example.pets")
    session.presignedForm = { upload in try await api.newPresignedForm(for: upload.tag(as: String.self)) }
    return session
}

private func presigned(router: Router<BasicRequestContext>) async throws {
    let store = try await S3UploadStore.open(S3Bucket("s3://uploads/forms"))
    var options = PresignedFormOptions()
    options.maximumBytes = 20 << 20
    options.contentTypes = [.anyImage]
    router.addUploads(to: store)
    try router.addPresignedForms(of: store, options: options)
    let sweep = StoreSweep(of: store, logger: Logger(label: "uploads"))
    try await Application(router: router, server: .uploads(), services: [sweep]).runService()
}

private func tracedReceiver(_ tracer: any Tracer) async throws {
    InstrumentationSystem.bootstrap(tracer)
    let store = try await S3UploadStore.open(S3Bucket("s3://uploads/forms"))
    try await Receiver(store: store).run()
}

private func patience(of client: inout UploadClient) {
    var patient = RetryPolicy(maximumAttempts: 20, deadline: .seconds(3600))
    patient.maximumDelay = .seconds(300)
    patient.statuses.remove(500)

    client.retryPolicy = patient
}

private func verified(_ form: MultipartForm, of original: URL, to url: URL, by sender: UploadClient) async throws {
    var client = sender
    client.responses.sendsDigests = true
    let response = try await client.upload(form, to: url)
    if response.isVerified { try FileManager.default.removeItem(at: original) }
}

// MARK: - PostcardPictures

private func fitted(_ photos: [URL], in form: inout MultipartForm, to url: URL, by client: UploadClient) async throws {
    form.append(photos: photos, named: "petImage", fitting: PictureLimit(maximumBytes: 1_000_000))
    try await client.upload(form, to: url)
}

private func fitted(_ photo: URL, in form: inout MultipartForm) async throws {
    let fitter = PictureFitter()
    let picture = try await fitter.fit(photo, to: PictureLimit(maximumBytes: 1_000_000))
    form.append(
        FormPart(
            name: "petImage", filename: picture.filename(for: photo.lastPathComponent),
            contentType: picture.contentType, content: picture.content))
}

// MARK: - PostcardQueue

private func queued(_ form: MultipartForm, to url: URL, in container: URL) async throws {
    let queue = UploadQueue(directory: container.appending(path: "uploads"))
    try await queue.enqueue(form, to: url)
}

private struct PetID: Codable {
    let number: Int

    init(_ number: Int) {
        self.number = number
    }
}

private func tagged(
    _ form: MultipartForm, to url: URL, in queue: UploadQueue, after upload: QueuedUpload
) async throws -> PetID? {
    try await queue.enqueue(form, to: url, tag: PetID(7))
    let id = try upload.tag(as: PetID.self)
    return id
}

private actor Diary {
    func save(_ response: QueuedUpload.Response, for pet: PetID?) throws {}
    func note(_ upload: QueuedUpload) throws {}
}

private func noted(in folder: URL, session: BackgroundSession, diary: Diary) -> UploadQueue {
    let queue = UploadQueue(directory: folder, session: session) { upload in
        guard case .done(let response) = upload.state else { return }
        try await diary.save(response, for: try upload.tag(as: PetID.self))
    }
    return queue
}

private struct StoredPet: Decodable {
    let isBusy: Bool
    let isStored: Bool
    let reason: String
}

private func judged(_ identifier: String) -> BackgroundSession {
    var session = BackgroundSession(identifier: identifier)
    session.accepts = { upload, response in
        let pet = try response.decode(StoredPet.self)
        if pet.isBusy { throw ResponseRejection("the server is busy", mayPass: true) }
        guard pet.isStored else { throw ResponseRejection(pet.reason) }
    }
    return session
}

private func typed<Endpoint: UploadEndpoint>(
    _ endpoint: Endpoint, in queue: UploadQueue, after upload: QueuedUpload
) async throws -> Endpoint.Response? {
    var pet: Endpoint.Response?
    try await queue.enqueue(endpoint, tag: PetID(7))
    if case .done(let response) = upload.state { pet = try endpoint.decode(response) }
    return pet
}

private func noted(in queue: UploadQueue, diary: Diary) async throws {
    for try await upload in queue.outcomes {
        try await diary.note(upload)
        try await queue.acknowledge(upload)
    }
}

// MARK: - PostcardServer

private enum Pets {
    struct Pet: Decodable {
        var name: String
        var pictures: [FormFile]
    }

    static func routes() async throws {
        let router = Router()
        router.add(middleware: ProblemMiddleware())
        router.post("pets") { request, _ in
            let pet = try await request.decodeForm(Pet.self)
            return "\(pet.name) has \(pet.pictures.count) pictures"
        }
        try await Application(router: router, server: .uploads()).runService()
    }
}

/// A stand-in for a service that keeps bytes.
private actor Bucket {
    func append(_ bytes: ByteBuffer) throws {}
}

private func streamed(into bucket: Bucket, _ router: Router<BasicRequestContext>) {
    router.post("films") { request, _ in
        for try await part in try request.form() {
            for try await piece in part { try await bucket.append(piece) }
        }
        return HTTPResponse.Status.created
    }
}

private func readingOptions() throws -> FormReadingOptions {
    var options = FormReadingOptions()
    options.limits.maximumBodyBytes = 20 << 20
    options.rules = try FormRules(
        fields: ["name": .init(atLeast: 1, atMost: 1, maximumCharacters: 80)],
        files: ["pictures": .init(atMost: 5, types: [.anyImage])])
    return options
}

private func uploads(_ router: Router<BasicRequestContext>) throws {
    var options = UploadOptions()
    options.path = "/api/pictures"
    options.access = .reading
    options.limits.maximumFileBytes = 50 << 20
    router.addUploads(to: try LocalUploadStore(directory: "received"), options: options)
}

private struct AccountContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    var user = ""

    init(source: ApplicationRequestContextSource) { coreContext = CoreRequestContextStorage(source: source) }
}

private struct PictureTable: Sendable {
    func insert(_ record: UploadRecord, owner: String) async throws {}
}

private func processed(
    _ router: Router<AccountContext>, _ store: LocalUploadStore, _ options: UploadOptions, into pictures: PictureTable
) {
    router.addUploads(to: store, options: options) { upload, _, context in
        try await pictures.insert(upload.record, owner: context.user)
    }
}

private func records(of store: LocalUploadStore) async throws {
    for id in try await store.identifiers(limit: 100, after: nil) {
        guard let record = try await store.record(id) else { continue }
        print(record.received, record.fields.map(\.value), record.files.map(\.sha256))
    }
}

private struct Scanner: Sendable {
    func finds(in path: FilePath) async throws -> Bool { false }
}

private func screened(_ options: inout UploadOptions, by scanner: Scanner) {
    options.screen = { file in
        guard let path = file.path else { return .accepted }
        return try await scanner.finds(in: path) ? .refused(reason: "The file has a virus.") : .accepted
    }
}

private func resumed(_ options: inout UploadOptions) {
    options.resumption?.lifetime = .seconds(6 * 60 * 60)
    options.resumption?.maximumUnfinishedBytes = 2 << 30
}

private actor Album {
    var hasRoom: Bool { true }
}

private func refused(_ album: Album) async throws {
    guard await album.hasRoom else {
        var problem = UploadProblem(
            status: .forbidden, code: "album-full", message: "The album has 500 pictures.", advice: "Remove some first."
        )
        problem.limit = UploadProblem.Limit(name: "pictures", value: 500)
        throw problem
    }
}

private func proxied(_ router: Router<BasicRequestContext>) async throws {
    var connections = ConnectionOptions()
    if let proxy = TrustedProxy("10.0.0.7") { connections.trustedProxies = [proxy] }
    let application = Application(router: router, server: .uploads(options: connections))
    try await application.runService()
}
