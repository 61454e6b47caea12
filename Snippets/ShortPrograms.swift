// What most apps do, each as short as it can be. A test counts the lines.
import Foundation
import PostcardClient
import PostcardPictures
import PostcardQueue

nonisolated struct Pet: Decodable, Sendable {
    let id: String
}

actor Account {
    func newToken(after refused: String?) async throws -> String { "token" }
}

nonisolated let base = URL(filePath: "/")

// snippet.typedEndpoint
struct AddPet: UploadEndpoint {
    typealias Response = Pet
    let baseURL = base
    let path = "pets"
    let photos: [URL]
    func form() -> MultipartForm {
        var form = MultipartForm()
        form.append(filesAt: photos, named: "petImage")
        return form
    }
}
// snippet.end

func addPet(_ photos: [URL], with client: inout UploadClient) async throws -> Pet {
    // snippet.typedUpload
    client.rules = try FormRules(files: ["petImage": .init(atMost: 5, types: [.anyImage])])
    return try await client.upload(AddPet(photos: photos))
    // snippet.end
}

func authorize(_ client: inout UploadClient, _ account: Account) {
    // snippet.token
    client.interceptors = [BearerTokenInterceptor { refused in try await account.newToken(after: refused) }]
    // snippet.end
}

func share(_ form: MultipartForm, to url: URL, in container: URL) async throws {
    // snippet.shareExtension
    let session = BackgroundSession(extension: "com.example.pets.share", appGroup: "group.com.example.pets")
    let queue = UploadQueue(directory: container.appending(path: "uploads"), session: session)
    try await queue.enqueue(form, to: url)
    try await queue.handOver()
    // snippet.end
}

// snippet.withoutNetwork
struct Recorder: UploadTransport {
    let bodies = AsyncStream.makeStream(of: Data.self)
    func send(
        _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
    ) async throws -> UploadResponse {
        var body = Data(count: Int(clamping: request.body?.contentLength ?? 0))
        _ = try body.withUnsafeMutableBytes { try request.body?.reader().read(into: $0) }
        bodies.continuation.yield(body)
        return UploadResponse(status: .created, headerFields: [:], body: Data(#"{"id": "1"}"#.utf8))
    }
}
// snippet.end

func testedWithoutNetwork(_ form: MultipartForm, _ url: URL) async throws -> Bool {
    // snippet.testWithoutNetwork
    let recorder = Recorder()
    let pet = try await UploadClient(transport: recorder).upload(form, to: url).decode(Pet.self)
    for await body in recorder.bodies.stream { return pet.id == "1" && body.count > 100 }
    return false
    // snippet.end
}

#if canImport(PhotosUI) && canImport(SwiftUI) && !os(tvOS) && !os(watchOS)
import PhotosUI
import SwiftUI

func send(_ item: PhotosPickerItem, with client: UploadClient, to url: URL) async throws -> Pet {
    // snippet.onePhoto
    var form = MultipartForm()
    form.append("초코", named: "name")
    form.append(FormPart(picked: item, named: "petImage"))
    return try await client.upload(form, to: url).decode(Pet.self)
    // snippet.end
}

// snippet.progress
struct Photos: View {
    @State private var uploads = UploadList()
    let photos: [URL]
    let url: URL
    var body: some View {
        List(uploads.items) { ProgressView($0.name, value: $0.fraction) }
            .task {
                guard uploads.items.isEmpty else { return }
                for photo in photos {
                    var form = MultipartForm()
                    form.append(fileAt: photo, named: "petImage")
                    uploads.add(form, to: url)
                }
            }
    }
}
// snippet.end

// snippet.retry
struct Uploads: View {
    let list: UploadQueueList
    var body: some View {
        List(list.uploads) { upload in
            Button("Retry") { list.retry(upload.id) }
                .swipeActions { Button("Delete") { list.remove(upload.id) } }
        }
        Button("Clear what is done") { list.clear() }
    }
}
// snippet.end
#endif

@main struct Programs {
    static func main() async throws {
        guard let url = URL(string: "http://127.0.0.1:8080/uploads") else { return }
        var form = MultipartForm()
        form.append("초코", named: "name")
        print(try await testedWithoutNetwork(form, url))
    }
}
