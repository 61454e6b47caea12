import Foundation
import PostcardTestSupport
import Testing

/// An app is refused by the App Store if a module calls an API whose use needs a reason, and does not give one.
@Suite struct PrivacyManifestTests {
    private static let allModules = Repository.modules.keys.sorted()

    /// The modules of servers, of tests and the program.
    private static let modulesOutsideApps = [
        "PostcardStore", "PostcardServer", "PostcardServerTesting", "PostcardReceiver", "PostcardTesting",
        "PostcardQueueTesting",
        "postcard",
    ]

    /// The modules that go into apps. A new module is one of them.
    private static let modules = allModules.filter { !modulesOutsideApps.contains($0) }

    /// The APIs of each category, by the words that Swift code calls them.
    private static let categories: [(name: String, calls: Set<String>)] = [
        (
            "FileTimestamp",
            [
                "creationDate", "modificationDate", "fileModificationDate", "contentModificationDate",
                "contentModificationDateKey", "creationDateKey", "getattrlist", "getattrlistbulk", "fgetattrlist",
                "getattrlistat", "stat", "fstat", "fstatat", "lstat", "st_mtim", "st_mtimespec",
            ]
        ),
        ("SystemBootTime", ["systemUptime", "mach_absolute_time"]),
        (
            "DiskSpace",
            [
                "volumeAvailableCapacity", "volumeAvailableCapacityForImportantUsage",
                "volumeAvailableCapacityForOpportunisticUsage", "volumeTotalCapacity", "volumeAvailableCapacityKey",
                "volumeAvailableCapacityForImportantUsageKey", "volumeAvailableCapacityForOpportunisticUsageKey",
                "volumeTotalCapacityKey", "systemFreeSize", "systemSize", "statfs", "statvfs", "fstatfs", "fstatvfs",
            ]
        ),
        ("ActiveKeyboards", ["activeInputModes"]), ("UserDefaults", ["UserDefaults", "AppStorage"]),
    ]

    /// The reasons that fit a library that reads files of the app and files that the user chose.
    private static let reasons = ["FileTimestamp": ["C617.1", "3B52.1"], "DiskSpace": ["E174.1"]]

    private static func manifest(of module: String) throws -> [String: Any]? {
        let file = Repository.sources(of: module).appending(path: "Resources/PrivacyInfo.xcprivacy")
        guard FileManager.default.fileExists(atPath: file.path) else { return nil }
        let list = try PropertyListSerialization.propertyList(from: Data(contentsOf: file), format: nil)
        return try #require(list as? [String: Any])
    }

    /// The categories of which a module's sources call an API. Samples of its documentation are not compiled into it.
    private static func called(by module: String) throws -> Set<String> {
        let folder = Repository.sources(of: module)
        let files = try #require(FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil))
        var called: Set<String> = []
        for case let file as URL in files where file.pathExtension == "swift" && !file.path.contains(".docc/") {
            let code = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
                .filter { !$0.drop(while: \.isWhitespace).hasPrefix("//") }
            let words = Set(code.flatMap { $0.split { !$0.isLetter && !$0.isNumber && $0 != "_" } }.map(String.init))
            for category in categories where !category.calls.isDisjoint(with: words) { called.insert(category.name) }
        }
        return called
    }

    @Test(arguments: modulesOutsideApps)
    func `a module that needs no manifest exists`(module: String) {
        #expect(Self.allModules.contains(module))
    }

    @Test(arguments: modules)
    func `a module gives a reason for every such API that it calls, and for no other`(module: String) throws {
        let manifest = try Self.manifest(of: module) ?? [:]
        let types = manifest["NSPrivacyAccessedAPITypes"] as? [[String: Any]] ?? []
        var declared: Set<String> = []
        for type in types {
            let name = try #require(type["NSPrivacyAccessedAPIType"] as? String)
            #expect(name.hasPrefix("NSPrivacyAccessedAPICategory"))
            let category = String(name.dropFirst("NSPrivacyAccessedAPICategory".count))
            let reasons = try #require(type["NSPrivacyAccessedAPITypeReasons"] as? [String])
            #expect(!reasons.isEmpty)
            #expect(Set(reasons).isSubset(of: Self.reasons[category] ?? []), "\(category)")
            declared.insert(category)
        }
        #expect(try Self.called(by: module) == declared)
    }

    @Test(arguments: modules)
    func `a manifest says that nothing is collected, and is part of the package`(module: String) throws {
        guard let manifest = try Self.manifest(of: module) else { return }
        let keys = [
            "NSPrivacyAccessedAPITypes", "NSPrivacyCollectedDataTypes", "NSPrivacyTracking", "NSPrivacyTrackingDomains",
        ]
        #expect(manifest.keys.sorted() == keys)
        #expect(manifest["NSPrivacyTracking"] as? Bool == false)
        #expect((manifest["NSPrivacyCollectedDataTypes"] as? [Any])?.isEmpty == true)

        let targets = try String(contentsOf: Repository.url("Package.swift"), encoding: .utf8)
            .split(separator: ".module(")
        let target = try #require(targets.first { $0.drop(while: \.isWhitespace).hasPrefix("\"\(module)\",") })
        #expect(target.contains("PrivacyInfo.xcprivacy"))
    }
}
