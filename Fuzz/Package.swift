// swift-tools-version: 6.2

import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

/// One program for each promise that no input may break. `run` builds them with libFuzzer, which brings the `main`.
let targets = [
    "Chunking", "RoundTrip", "HeaderValues", "Decoding", "Rules", "Doctor", "Metadata", "Pictures", "Heads",
    "QueueRows", "JSONReading",
]

/// What some of them need besides what all need.
let dependencies: [String: [Target.Dependency]] = [
    "Heads": [
        .product(name: "PostcardReceiver", package: "postcard"), .product(name: "PostcardServer", package: "postcard"),
        .product(name: "Logging", package: "swift-log"),
    ],
    "Pictures": [.product(name: "PostcardPictures", package: "postcard")],
    "QueueRows": [
        .product(name: "PostcardClient", package: "postcard"), .product(name: "PostcardQueue", package: "postcard"),
        .product(name: "GRDB", package: "GRDB.swift"), .product(name: "HTTPTypes", package: "swift-http-types"),
    ],
]

let package = Package(
    name: "postcard-fuzz",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "postcard", path: "..", traits: ["Queue", "Server"]),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.14.0"),
        .package(url: "https://github.com/groue/GRDB.swift.git", from: "7.10.0"),
        .package(url: "https://github.com/apple/swift-http-types.git", from: "1.8.0", traits: []),
    ],
    targets: [
        .target(
            name: "Inputs", dependencies: [.product(name: "PostcardForm", package: "postcard")],
            swiftSettings: settings)
    ]
        + targets.map { name in
            .executableTarget(
                name: name,
                dependencies: [
                    "Inputs", .product(name: "PostcardForm", package: "postcard"),
                    .product(name: "PostcardDoctor", package: "postcard"),
                ] + dependencies[name, default: []],
                swiftSettings: settings + [.unsafeFlags(["-parse-as-library"])])
        },
    swiftLanguageModes: [.v6]
)
