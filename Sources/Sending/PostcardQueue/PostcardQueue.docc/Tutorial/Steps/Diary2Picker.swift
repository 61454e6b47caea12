import PhotosUI
import SwiftUI

@main struct PetDiary: App {
    var body: some Scene {
        WindowGroup { Diary() }
    }
}

struct Diary: View {
    @State private var picked: [PhotosPickerItem] = []
    @State private var name = ""

    var body: some View {
        Form {
            TextField("Name", text: $name)
            PhotosPicker("Choose photos", selection: $picked, matching: .images, preferredItemEncoding: .current)
            Text("\(picked.count) photos")
        }
    }
}
