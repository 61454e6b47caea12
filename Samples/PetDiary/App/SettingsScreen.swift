import DiaryKit
import Foundation
import SwiftUI

/// The address of the server, and a button that tries it.
struct SettingsScreen: View {
    @AppStorage(ServerAddress.key, store: DiaryQueue.settings) private var address = ""
    @State private var result = ""

    var body: some View {
        Form {
            Section(DiaryText.server.localized()) {
                AddressField(address: $address)
                Button(DiaryText.tryAddress.localized()) {
                    Task { await tryAddress() }
                }
                .disabled(address.isEmpty)
                Text(result).font(.caption)
            }
        }
    }

    /// Sends a request while the app is on the screen, when iOS can ask for permission to use the local network. Uploads in
    /// the background need it, too.
    private func tryAddress() async {
        result = "…"
        do {
            let request = URLRequest(url: try ServerAddress.url(address))
            let (_, response) = try await URLSession.shared.data(for: request)
            result = DiaryText.answered.localized("\((response as? HTTPURLResponse)?.statusCode ?? 0)")
        } catch {
            result = error.localizedDescription
        }
    }
}

/// A field for an address. The example is only shown, and refused if someone types it.
struct AddressField: View {
    @Binding var address: String

    var body: some View {
        TextField(ServerAddress.example, text: $address)
            .autocorrectionDisabled()
            .textInputAutocapitalization(.never)
    }
}
