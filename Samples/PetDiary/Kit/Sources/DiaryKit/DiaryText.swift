import Foundation

/// Every text of the app, its share extension and its Live Activity, in English. `Localizable.xcstrings` has the Korean
/// ones.
public enum DiaryText: String, Sendable, CaseIterable {
    case title = "Pet Diary"
    case newEntry = "New entry"
    case entries = "Entries"
    case allEntries = "All entries"
    case settings = "Settings"
    case server = "Server"
    case name = "Name"
    case memo = "Memo"
    case choosePhotos = "Choose photos"
    case photos = "Photos: %1$@"
    case photo = "Photo %1$@"
    case send = "Send"
    case stop = "Stop"
    case cancel = "Cancel"
    case close = "Close"
    case pause = "Pause"
    case resume = "Resume"
    case tryNow = "Try now"
    case sendAgain = "Send again"
    case sendElsewhere = "Send to another address"
    case pauseAll = "Pause all"
    case resumeAll = "Resume all"
    case sendFailedAgain = "Send failed entries again"
    case cancelAll = "Cancel all"
    case removeEnded = "Remove what has ended"
    case tryAddress = "Try it"
    case waiting = "Waiting"
    case waitingForNetwork = "Waiting for a network"
    case sending = "Sending"
    case tryingAgain = "%1$@ Trying again at %2$@."
    case paused = "Paused"
    case done = "The server has it."
    case cancelled = "Cancelled"
    case importing = "Getting it from the library"
    case imported = "Ready"
    case sentOf = "%1$@ of %2$@ sent"
    case answered = "The server answers. Status: %1$@"
    case noAddress = "Enter the address of your server in the settings."
    case invalidAddress = "“%1$@” is not an address. It starts with http:// or https://."
    case placeholder = "“%1$@” is only an example. Enter the address of your own server."
    case nothingToSend = "All photos were cancelled, so there is nothing to send."
    case saved = "The entry is saved. It is sent when you open the app."
    case olderDiary = "Entries of an older version of the app are in %1$@. They are not sent."

    /// The text in the user's language. On Linux, the English one.
    ///
    /// - Parameter arguments: What takes the place of `%1$@` and `%2$@`.
    public func localized(_ arguments: String...) -> String {
        #if canImport(Darwin)
        let text = Bundle.module.localizedString(forKey: rawValue, value: nil, table: nil)
        #else
        let text = rawValue
        #endif
        return arguments.enumerated().reduce(text) { text, argument in
            text.replacing("%\(argument.offset + 1)$@", with: argument.element)
        }
    }
}
