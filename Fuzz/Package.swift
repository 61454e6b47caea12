// swift-tools-version: 6.2

import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

/// One program for each promise that no input may break. `run` builds them with libFuzzer, which brings the `main`.
let targets = ["Chunking", "RoundTrip", "HeaderValues", "Decoding", "Rules", "Doctor"]

let package = Package(
    name: "postcard-fuzz",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "postcard", path: "..", traits: ["Server"]),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.14.0"),
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
                ],
                swiftSettings: settings + [.unsafeFlags(["-parse-as-library"])])
        } + [
            .executableTarget(
                name: "Heads",
                dependencies: [
                    "Inputs", .product(name: "PostcardServer", package: "postcard"),
                    .product(name: "Logging", package: "swift-log"),
                ],
                swiftSettings: settings + [.unsafeFlags(["-parse-as-library"])])
        ],
    swiftLanguageModes: [.v6]
)
