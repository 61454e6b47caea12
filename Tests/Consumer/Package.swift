// swift-tools-version: 6.2

import PackageDescription

/// A program that uses a few products of Postcard, with the traits that they need and no others. Scripts/check-consumers
/// builds each of them; CONSUMER names the one to build.
struct Consumer {
    var traits: Set<Package.Dependency.Trait>
    var products: [String]
    var packages: [Package.Dependency] = []
    var dependencies: [Target.Dependency] = []
    /// Whether it is an app with tests, in place of a program.
    var hasTests = false
}

let consumers: [String: Consumer] = [
    "Form": Consumer(traits: [], products: ["PostcardDoctor", "PostcardForm"]),
    "Client": Consumer(traits: [], products: ["PostcardClient"]),
    "AsyncHTTP": Consumer(traits: ["AsyncHTTP"], products: ["PostcardAsyncHTTP"]),
    "Queue": Consumer(traits: ["Queue"], products: ["PostcardQueue"]),
    "Testing": Consumer(traits: ["Queue"], products: ["PostcardQueue", "PostcardQueueTesting"], hasTests: true),
    "Reception": Consumer(
        traits: ["Store"], products: ["PostcardReception"],
        packages: [.package(url: "https://github.com/apple/swift-http-types.git", from: "1.8.0", traits: [])],
        dependencies: [.product(name: "HTTPTypes", package: "swift-http-types")]),
    "S3": Consumer(traits: ["S3"], products: ["PostcardS3", "PostcardStore"]),
    "Server": Consumer(
        traits: ["Server"], products: ["PostcardForm", "PostcardServer"],
        packages: [.package(url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.28.1", traits: [])],
        dependencies: [.product(name: "Hummingbird", package: "hummingbird")]),
]

let name = Context.environment["CONSUMER"] ?? "Client"

guard let consumer = consumers[name] else {
    fatalError("CONSUMER is \(consumers.keys.sorted().joined(separator: ", "))")
}

/// As new projects of Xcode 26 have it: a module's import must bring all that its declarations are made of.
let settings: [SwiftSetting] = [.enableUpcomingFeature("MemberImportVisibility")]
let products = consumer.products.map { Target.Dependency.product(name: $0, package: "postcard") }

/// How an app's tests are compiled, each with the same sources: Tests/Testing, and links to it.
let modes: [(name: String, settings: [SwiftSetting])] = [
    ("", [.swiftLanguageMode(.v6)]), ("InSwift5", [.swiftLanguageMode(.v5)]),
    ("OnMainActor", [.swiftLanguageMode(.v6), .defaultIsolation(MainActor.self)]),
]

/// Where the compiler writes an index of the tests, in which SwiftPM finds those of XCTest on Linux. Nothing else needs one.
let index: [SwiftSetting] = Context.environment["INDEX_STORE"].map { [.unsafeFlags(["-index-store-path", $0])] } ?? []

/// The code of the tutorial's last section, and how Xcode 26 compiles a new app.
let diary: [Target] = [
    .target(
        name: "PetDiary", dependencies: Array(products.prefix(1)), path: "Sources/Diary",
        swiftSettings: settings + [.defaultIsolation(MainActor.self)]),
    .testTarget(
        name: "PetDiaryTests", dependencies: ["PetDiary"] + products, path: "Tests/Diary",
        swiftSettings: settings + index),
]

let targets: [Target] =
    consumer.hasTests
    ? [
        .target(
            name: "Pets", dependencies: Array(products.prefix(1)), path: "Sources/\(name)",
            swiftSettings: settings)
    ]
        + modes.map { mode in
            .testTarget(
                name: "PetsTests\(mode.name)", dependencies: ["Pets"] + products,
                path: mode.name.isEmpty ? "Tests/\(name)" : "Tests/Linked/\(name)\(mode.name)",
                swiftSettings: settings + mode.settings + index)
        } + diary
    : [
        .executableTarget(
            name: "Consumer", dependencies: products + consumer.dependencies, path: "Sources/\(name)",
            swiftSettings: settings)
    ]

let package = Package(
    name: "Consumer",
    platforms: [.macOS(.v15)],
    dependencies: [
        // The name, because the folder may have any.
        .package(name: "postcard", path: "../..", traits: consumer.traits)
    ] + consumer.packages,
    targets: targets
)
