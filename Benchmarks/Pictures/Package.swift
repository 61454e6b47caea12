// swift-tools-version: 6.2

import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

/// How well and how fast pictures are made to fit; see README.md. It needs the libraries for pictures, so it is
/// a package apart from the other benchmarks.
let package = Package(
    name: "postcard-pictures",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "postcard", path: "../..", traits: [])],
    targets: [
        .executableTarget(
            name: "fitting",
            dependencies: [
                .product(name: "PostcardForm", package: "postcard"),
                .product(name: "PostcardPictures", package: "postcard"),
            ],
            swiftSettings: settings)
    ],
    swiftLanguageModes: [.v6]
)
