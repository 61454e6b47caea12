public import Foundation
public import PostcardQueue

/// The queue that the app shares with its share extension.
public enum DiaryQueue {
    /// The app group of the app and its extensions, as in their entitlements.
    public static let appGroup = "group.com.example.PetDiary"

    /// Who sends. The app has a background session, and each run of an extension has one of its own.
    public enum Sender: String, Sendable, CaseIterable {
        case app, shareExtension
    }

    /// How the identifiers of all sessions begin. The system wakes the app for each of them.
    public static let sessionPrefix = "com.example.PetDiary."

    /// The folder of the queue.
    ///
    /// - Parameters:
    ///   - container: The container of the app group, or `nil` if the app has none: then the extension cannot send.
    ///   - fallback: A folder of the app's own.
    public static func directory(in container: URL?, or fallback: URL) -> URL {
        (container ?? fallback).appending(path: "Uploads")
    }

    public static func session(_ sender: Sender, hasGroup: Bool) -> BackgroundSession {
        let identifier = sessionPrefix + sender.rawValue
        var session =
            switch sender {
            case .app: BackgroundSession(identifier: identifier)
            case .shareExtension: BackgroundSession(extension: identifier, appGroup: appGroup)
            }
        session.appGroup = hasGroup ? appGroup : nil
        return session
    }

    #if canImport(Darwin)
    /// Makes the queue. Make it at every start, also when the system starts the app in the background. It can be made
    /// before the device is unlocked for the first time.
    public static func make(_ sender: Sender) -> UploadQueue {
        let container = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: appGroup)
        return UploadQueue(
            directory: directory(in: container, or: .applicationSupportDirectory),
            session: session(sender, hasGroup: container != nil))
    }

    /// The settings that the app shares with its extensions.
    public static var settings: UserDefaults { UserDefaults(suiteName: appGroup) ?? .standard }
    #endif
}
