// swift-tools-version: 6.2

import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

/// What a long queue costs; see ../README.md. It builds SQLite and the client, so it is a package apart from the other
/// benchmarks.
let package = Package(
    name: "postcard-waiting",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "postcard", path: "../..", traits: ["Queue"]),
        .package(url: "https://github.com/apple/swift-http-types.git", from: "1.8.0", traits: []),
    ],
    targets: [
        .executableTarget(
            name: "waiting",
            dependencies: [
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "PostcardClient", package: "postcard"),
                .product(name: "PostcardForm", package: "postcard"),
                .product(name: "PostcardQueue", package: "postcard"),
            ],
            swiftSettings: settings)
    ],
    swiftLanguageModes: [.v6]
)
