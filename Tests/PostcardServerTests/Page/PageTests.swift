import Foundation
import Testing

/// Chromium uses the page as people do; what is expected of it stands in `Tests/Browser/check.py`.
@Suite(
    .timeLimit(.minutes(3)), .serialized, .enabled(if: Chromium.canRun, "There is no Chromium, or no Python for it"))
struct PageTests {
    @Test(
        "The page does what people expect of it",
        arguments: [
            "sending", "cancelling", "deleting", "refused", "hostile", "plain", "keyboard", "languages",
        ])
    func scenario(_ name: String) async throws {
        let pictures = try FileManager.default.contentsOfDirectory(
            at: Chromium.repository.appending(path: "Samples/Pictures"), includingPropertiesForKeys: nil)
        let script = Chromium.repository.appending(path: "Tests/Browser/check.py").path(percentEncoded: false)
        try await withReceiver { receiver in
            let result = try await CommandResult(
                Chromium.python,
                [script, name, receiver.url] + pictures.map { $0.path(percentEncoded: false) }.sorted())
            #expect(result.status == 0, "\(result.errors)")
        }
    }
}

/// What drives Chromium.
private enum Chromium {
    static let repository = URL(filePath: #filePath).appending(path: "../../../..").standardized
    static let python = repository.appending(path: ".build/receivers/bin/python").path(percentEncoded: false)

    static let canRun: Bool = {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let hasBrowser = path.split(separator: ":").contains { folder in
            ["chromium", "chromium-browser", "google-chrome"].contains {
                FileManager.default.isExecutableFile(atPath: "\(folder)/\($0)")
            }
        }
        return hasBrowser && FileManager.default.isExecutableFile(atPath: python)
    }()
}
