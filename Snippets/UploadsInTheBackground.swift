// An app whose uploads go on while it is suspended or closed: the queue, the photos, the list, and the system's
// wake-ups.

import Foundation
import PostcardPictures
import PostcardQueue

#if canImport(PhotosUI) && canImport(SwiftUI) && !os(tvOS) && !os(watchOS)
import PhotosUI
import SwiftUI

private let url = URL(filePath: "/")

// snippet.show
@main struct PetDiary: App {
    let queue = UploadQueue(
        directory: .applicationSupportDirectory.appending(path: "uploads"),
        session: BackgroundSession(identifier: "com.example.pets"))

    var body: some Scene {
        WindowGroup { Diary(list: UploadQueueList(queue)) }
            .backgroundTask(.urlSession("com.example.pets")) { await queue.handleEvents() }
    }
}
struct Diary: View {
    @State var list: UploadQueueList
    @State private var photos: [PhotosPickerItem] = []
    @State private var problem: String?

    var body: some View {
        VStack {
            List(list.uploads) { upload in ProgressView(value: upload.fraction) }
            if let problem = problem ?? list.error?.localizedDescription { Text(problem) }
            PhotosPicker("Send photos", selection: $photos, matching: .images, preferredItemEncoding: .current)
        }
        .task { await list.run() }
        .onChange(of: photos) {
            let picked = photos
            // Otherwise the next selection would begin with these photos, and send them again.
            photos = []
            Task { await report { try await send(picked) } }
        }
    }
    func send(_ photos: [PhotosPickerItem]) async throws {
        var form = MultipartForm()
        for photo in photos { form.append(FormPart(picked: photo, named: "petImage")) }
        if !form.parts.isEmpty { try await list.queue.enqueue(form, to: url) }
    }
    func report(_ work: () async throws -> Void) async {
        do { try await work() } catch is CancellationError {} catch { problem = error.localizedDescription }
    }
}
// snippet.hide
#else
// Without a system that carries uploads, the queue sends them in this process, and the next run resumes what it left.
@main
struct Program {
    static func main() async throws {
        guard let url = CommandLine.arguments.dropFirst().first.flatMap({ URL(string: $0) }) else {
            print("Usage: UploadsInTheBackground URL PHOTO...")
            exit(64)
        }
        let queue = UploadQueue(
            directory: URL(filePath: "uploads"),
            session: BackgroundSession(identifier: "com.example.pets"))
        for photo in CommandLine.arguments.dropFirst(2) {
            var form = MultipartForm()
            form.append(fileAt: URL(filePath: photo), named: "petImage")
            try await queue.enqueue(form, to: url)
        }
        try await queue.run(endsWhenEmpty: true)
        for upload in try await queue.uploads() { print(upload.id, upload.state.name) }
    }
}
#endif
