import Foundation
import SwiftUI

/// The address of the server, and a button that tries it.
struct SettingsScreen: View {
    @AppStorage(ServerAddress.key) private var address = ""
    @State private var result = ""

    var body: some View {
        Form {
            Section("Server") {
                TextField(ServerAddress.example, text: $address)
                    .autocorrectionDisabled()
                    .textInputAutocapitalization(.never)
                Button("Try it") {
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
            result = "The server answers. Status: \((response as? HTTPURLResponse)?.statusCode ?? 0)"
        } catch {
            result = error.localizedDescription
        }
    }
}
