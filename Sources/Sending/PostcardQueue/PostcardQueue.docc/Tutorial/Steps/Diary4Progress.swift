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
    @State private var fraction: Double?

    var body: some View {
        Form {
            TextField("Address", text: $address)
            TextField("Name", text: $name)
            PhotosPicker("Choose photos", selection: $picked, matching: .images, preferredItemEncoding: .current)
            Button("Send \(picked.count) photos") { Task { await send() } }
            if let fraction { ProgressView("Sending", value: fraction) }
            Text(status)
        }
    }

    private func send() async {
        guard let url = URL(string: address) else { return status = "The address is not valid." }
        defer { fraction = nil }
        do {
            var form = MultipartForm()
            form.append(name, named: "name")
            for photo in picked { form.append(FormPart(picked: photo, named: "petImage")) }
            let client = UploadClient(retryPolicy: RetryPolicy(maximumAttempts: 4))
            let response = try await client.upload(form, to: url) { progress in
                fraction = progress.fraction
            }
            status = "The server responded with \(response.status.code)."
        } catch let error as UploadError {
            status = "\(error.localizedDescription) \(error.recoverySuggestion ?? "")"
        } catch {
            status = error.localizedDescription
        }
    }
}
