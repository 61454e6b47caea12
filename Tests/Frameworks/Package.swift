// swift-tools-version: 6.2

import PackageDescription

/// Receivers on three servers, which `check` compares: each does what the others do.
let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

let reception: [Target.Dependency] = [
    "Settings", .product(name: "PostcardReception", package: "postcard"),
    .product(name: "HTTPTypes", package: "swift-http-types"),
]

let package = Package(
    name: "postcard-frameworks",
    platforms: [.macOS(.v15)],
    dependencies: [
        // The trait Server brings what Store does. FlyingFox and SwiftNIO need Store alone.
        .package(name: "postcard", path: "../..", traits: ["Server"]),
        .package(url: "https://github.com/swhitty/FlyingFox.git", from: "0.27.1"),
        .package(url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.28.1", traits: []),
        .package(url: "https://github.com/apple/swift-http-types.git", from: "1.8.0", traits: []),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-extras.git", from: "1.35.2"),
    ],
    targets: [
        .target(
            name: "Settings",
            dependencies: [
                .product(name: "PostcardForm", package: "postcard"),
                .product(name: "PostcardReception", package: "postcard"),
            ], swiftSettings: settings),
        .executableTarget(
            name: "FlyingFoxReceiver",
            dependencies: reception + [
                .product(name: "FlyingFox", package: "FlyingFox"), .product(name: "FlyingSocks", package: "FlyingFox"),
            ], swiftSettings: settings),
        .executableTarget(
            name: "NIOReceiver",
            dependencies: reception + [
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
                .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ], swiftSettings: settings),
        .executableTarget(
            name: "HummingbirdReceiver",
            dependencies: reception + [
                .product(name: "PostcardServer", package: "postcard"),
                .product(name: "Hummingbird", package: "hummingbird"),
            ], swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)
