import Foundation
import PhotosUI
import PostcardClient
import PostcardPictures
import SwiftUI

@main struct PetDiary: App {
    var body: some Scene {
        WindowGroup { Diary() }
    }
}

struct Diary: View {
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
            Text(status)
        }
    }

    private func send() async {
        guard let url = URL(string: address) else { return status = "The address is not valid." }
        do {
            var form = MultipartForm()
            form.append(name, named: "name")
            for photo in picked { form.append(FormPart(picked: photo, named: "petImage")) }
            let response = try await UploadClient().upload(form, to: url)
            status = "The server responded with \(response.status.code)."
        } catch {
            status = error.localizedDescription
        }
    }
}
