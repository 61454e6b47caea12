import PostcardQueue
import SwiftUI

/// One entry: its state, the progress of each photo, and what can be done to it.
struct UploadRow: View {
    let upload: QueuedUpload
    let list: UploadQueueList

    var body: some View {
        VStack(alignment: .leading) {
            Text(upload.enqueued.formatted(date: .abbreviated, time: .shortened))
            Text(upload.state.text).font(.caption)
            ForEach(photos, id: \.content) { photo in
                ProgressView(photo.filename ?? photo.name, value: upload.fraction(of: photo))
            }
            // Without a style, a tap anywhere in the row would press all of its buttons.
            HStack { buttons }.buttonStyle(.borderless)
        }
    }

    private var photos: [QueuedUpload.Part] { upload.parts.filter { $0.filename != nil } }

    @ViewBuilder private var buttons: some View {
        switch upload.state {
        case .waiting, .waitingForNetwork, .sending:
            Button("Pause") { list.pause(upload.id) }
            Button("Cancel") { list.cancel(upload.id) }
        case .retrying:
            Button("Try now") { list.retry(upload.id) }
            Button("Pause") { list.pause(upload.id) }
            Button("Cancel") { list.cancel(upload.id) }
        case .paused:
            Button("Resume") { list.resume(upload.id) }
            Button("Cancel") { list.cancel(upload.id) }
        case .failed, .cancelled:
            Button("Send again") { list.retry(upload.id) }
        case .done:
            EmptyView()
        }
    }
}

extension QueuedUpload.State {
    /// The state in a sentence.
    fileprivate var text: String {
        switch self {
        case .waiting: "Waiting"
        case .waitingForNetwork: "Waiting for a network"
        case .sending: "Sending"
        case .retrying(let date, let failure):
            "\(failure.localizedDescription) Trying again at \(date.formatted(date: .omitted, time: .shortened))."
        case .paused: "Paused"
        case .done: "The server has it."
        case .failed(let failure): "\(failure.localizedDescription) \(failure.recoverySuggestion ?? "")"
        case .cancelled: "Cancelled"
        }
    }
}
