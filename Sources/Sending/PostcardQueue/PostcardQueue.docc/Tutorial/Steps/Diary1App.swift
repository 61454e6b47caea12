import SwiftUI

@main struct PetDiary: App {
    var body: some Scene {
        WindowGroup { Diary() }
    }
}

struct Diary: View {
    var body: some View {
        Form {
            Text("No photos yet")
        }
    }
}
