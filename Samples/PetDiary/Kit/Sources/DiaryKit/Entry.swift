import Foundation
public import PostcardQueue

/// What can be done to an entry.
public enum EntryAction: Sendable, CaseIterable {
    case tryNow, sendAgain, pause, resume, sendElsewhere, cancel

    public var text: DiaryText {
        switch self {
        case .tryNow: .tryNow
        case .sendAgain: .sendAgain
        case .pause: .pause
        case .resume: .resume
        case .sendElsewhere: .sendElsewhere
        case .cancel: .cancel
        }
    }
}

extension QueuedUpload {
    /// What can be done to the entry now, in the order of the buttons.
    public var actions: [EntryAction] {
        switch state {
        case .importing(let failure): failure == nil ? [.cancel] : [.tryNow, .cancel]
        case .waiting, .waitingForNetwork, .sending: [.pause, .sendElsewhere, .cancel]
        case .retrying: [.tryNow, .pause, .sendElsewhere, .cancel]
        case .paused: [.resume, .sendElsewhere, .cancel]
        case .failed, .cancelled: [.sendAgain, .sendElsewhere]
        case .done: []
        }
    }

    /// The photos of the entry.
    public var photos: [Part] { parts.filter { $0.filename != nil } }

    /// The state of the entry in a sentence.
    public var text: String {
        switch state {
        case .importing(let failure): failure?.localizedDescription ?? DiaryText.importing.localized()
        case .waiting: DiaryText.waiting.localized()
        case .waitingForNetwork: DiaryText.waitingForNetwork.localized()
        case .sending: DiaryText.sending.localized()
        case .retrying(let date, let failure):
            DiaryText.tryingAgain.localized(
                failure.localizedDescription, date.formatted(date: .omitted, time: .shortened))
        case .paused: DiaryText.paused.localized()
        case .done: DiaryText.done.localized()
        case .failed(let failure):
            [failure.localizedDescription, failure.recoverySuggestion].compactMap(\.self).joined(separator: " ")
        case .cancelled: DiaryText.cancelled.localized()
        }
    }
}
