import Foundation
import PhotosUI
import PostcardPictures
import PostcardQueue
import SwiftUI

@main struct PetDiary: App {
    let queue = UploadQueue(
        directory: .applicationSupportDirectory.appending(path: "uploads"),
        session: BackgroundSession(identifier: "com.example.pets")
    ) { upload in
        guard case .done(let response) = upload.state else { return }
        let record = try response.decode(Record.self)
        UserDefaults.standard.set(record.id, forKey: "latest")
    }

    var body: some Scene {
        WindowGroup { Diary(list: UploadQueueList(queue)) }
            .backgroundTask(.urlSession("com.example.pets")) { await queue.handleEvents() }
    }
}

nonisolated struct Record: Decodable {
    let id: String
}

struct Diary: View {
    @AppStorage("latest") private var latest = "nothing yet"
    @State var list: UploadQueueList
    @AppStorage("address") private var address = "http://localhost:8080/uploads"
    @State private var picked: [PhotosPickerItem] = []
    @State private var name = ""
    @State private var status = ""

    var body: some View {
        Form {
            TextField("Address", text: $address)
            TextField("Name", text: $name)
            PhotosPicker("Choose photos", selection: $picked, matching: .images, preferredItemEncoding: .current)
            Button("Send \(picked.count) photos") { Task { await send() } }
            Text("Stored last: \(latest)")
            Text(list.error?.localizedDescription ?? status)
            ForEach(list.uploads.reversed()) { upload in ProgressView(value: upload.fraction) }
        }
        .task { await list.run() }
    }

    private func send() async {
        guard let url = URL(string: address) else { return status = "The address is not valid." }
        do {
            var form = MultipartForm()
            form.append(name, named: "name")
            for photo in picked { form.append(FormPart(picked: photo, named: "petImage")) }
            try await list.queue.enqueue(form, to: url)
            (picked, name, status) = ([], "", "")
        } catch {
            status = error.localizedDescription
        }
    }
}
