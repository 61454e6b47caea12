// swift-tools-version: 6.2

import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

/// How fast Postcard sends, compared with curl and libcurl; see ../README.md. It needs libcurl's headers, and it builds
/// all that the program `postcard` is made of, so it is a package apart from the other benchmarks.
let package = Package(
    name: "postcard-sending",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "postcard", path: "../..")],
    targets: [
        .executableTarget(name: "sink"),
        .executableTarget(name: "easy", linkerSettings: [.linkedLibrary("curl")]),
        .target(name: "ChildProcess"),
        .executableTarget(
            name: "sending",
            dependencies: [
                "ChildProcess",
                // The programs that it runs are built with it.
                "easy", "sink", .product(name: "postcard", package: "postcard"),
                .product(name: "PostcardAsyncHTTP", package: "postcard"),
                .product(name: "PostcardClient", package: "postcard"),
                .product(name: "PostcardForm", package: "postcard"),
            ],
            swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)
