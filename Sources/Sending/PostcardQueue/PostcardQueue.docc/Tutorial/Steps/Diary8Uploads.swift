import Foundation
import PostcardQueue

/// What the diary sends, without a screen.
struct Uploads {
    static let session = "com.example.pets"

    let queue: UploadQueue

    init(folder: URL, stored: @escaping @Sendable (Record) -> Void) {
        queue = UploadQueue(
            directory: folder.appending(path: "uploads"), session: BackgroundSession(identifier: Self.session)
        ) { upload in
            guard case .done(let response) = upload.state else { return }
            stored(try response.decode(Record.self))
        }
    }

    func send(_ name: String, photos: [FormPart], to url: URL) async throws -> QueuedUpload.ID {
        var form = MultipartForm()
        form.append(name, named: "name")
        for photo in photos { form.append(photo) }
        return try await queue.enqueue(form, to: url)
    }
}

nonisolated struct Record: Decodable {
    let id: String
}
