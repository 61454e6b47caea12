import DiaryKit
import Foundation
import PostcardTestSupport
import Testing

/// The texts of the sample app, in both of its languages.
struct DiaryTextTests {
    private static let sample = Repository.url("Samples/PetDiary")

    private struct Catalog: Decodable {
        struct Entry: Decodable { let localizations: [String: Localization] }
        struct Localization: Decodable { let stringUnit: Unit }
        struct Unit: Decodable {
            let state: String
            let value: String
        }
        let strings: [String: Entry]
    }

    @Test func `each text has a Korean one with the same placeholders`() throws {
        let file = Self.sample.appending(path: "Kit/Sources/DiaryKit/Localizable.xcstrings")
        let catalog = try JSONDecoder().decode(Catalog.self, from: try Data(contentsOf: file))
        #expect(Set(catalog.strings.keys) == Set(DiaryText.allCases.map(\.rawValue)))
        for (key, entry) in catalog.strings {
            let korean = try #require(entry.localizations["ko"]?.stringUnit, "\(key)")
            #expect(korean.state == "translated" && korean.value != key, "\(key)")
            for placeholder in ["%1$@", "%2$@"] {
                #expect(key.contains(placeholder) == korean.value.contains(placeholder), "\(key)")
            }
        }
    }

    @Test func `placeholders are filled, also by texts with placeholders`() {
        #expect(DiaryText.sentOf.localized("2", "7") == "2 of 7 sent")
        #expect(DiaryText.invalidAddress.localized("%2$@").contains("“%2$@”"))
    }

    /// A text that is written in a screen is shown in English to everyone.
    @Test func `the screens have no texts of their own`() throws {
        let views = "Text|Button|Section|TextField|Menu|ProgressView|PhotosPicker|navigationTitle"
        let call = try Regex("(?:\(views))" + #"\(\s*"[^"\\]*[A-Za-z][^"\\]*""#)
        let folders = ["App", "ShareExtension", "LiveActivity", "Kit/Sources/DiaryKit"]
        var count = 0
        for folder in folders {
            let place = Self.sample.appending(path: folder)
            for name in try FileManager.default.contentsOfDirectory(atPath: place.path) where name.hasSuffix(".swift") {
                count += 1
                let text = try String(contentsOf: place.appending(path: name), encoding: .utf8)
                for match in text.matches(of: call) { Issue.record("\(folder)/\(name): \(text[match.range])") }
            }
        }
        #expect(count > 10)
    }
}
