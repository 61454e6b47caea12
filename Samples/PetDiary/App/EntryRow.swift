import DiaryKit
import Foundation
import PostcardQueue
import SwiftUI

/// One entry: its state, the progress of each photo, and what can be done to it.
struct EntryRow: View {
    let upload: QueuedUpload
    let list: UploadQueueList
    @State private var isChangingAddress = false

    var body: some View {
        VStack(alignment: .leading) {
            Text(upload.enqueued.formatted(date: .abbreviated, time: .shortened))
            Text(upload.text).font(.caption)
            ForEach(upload.photos) { photo in
                ProgressView(photo.filename ?? photo.name, value: upload.fraction(of: photo))
            }
            // Without a style, a tap anywhere in the row would press all of its buttons.
            HStack {
                ForEach(upload.actions, id: \.self) { action in
                    Button(action.text.localized()) { perform(action) }
                }
            }
            .buttonStyle(.borderless)
        }
        .sheet(isPresented: $isChangingAddress) {
            AddressScreen(address: upload.url.absoluteString) { list.retry(upload.id, to: $0) }
        }
    }

    private func perform(_ action: EntryAction) {
        switch action {
        case .tryNow, .sendAgain: list.retry(upload.id)
        case .pause: list.pause(upload.id)
        case .resume: list.resume(upload.id)
        case .sendElsewhere: isChangingAddress = true
        case .cancel: list.cancel(upload.id)
        }
    }
}

/// Another address for an entry, for example because the server has moved.
private struct AddressScreen: View {
    @State var address: String
    let send: (URL) -> Void
    @Environment(\.dismiss) private var dismiss
    @State private var problem: String?

    var body: some View {
        Form {
            Section(DiaryText.sendElsewhere.localized()) {
                AddressField(address: $address)
                Button(DiaryText.send.localized()) {
                    do {
                        send(try ServerAddress.url(address))
                        dismiss()
                    } catch {
                        problem = error.localizedDescription
                    }
                }
                Button(DiaryText.cancel.localized()) { dismiss() }
                if let problem { Text(problem).foregroundStyle(.red) }
            }
        }
    }
}
