// swift-tools-version: 6.2

import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

/// How fast Postcard receives, compared with a receiver written in Go; see ../README.md. It builds all that the program
/// `postcard` is made of, so it is a package apart from the other benchmarks.
let package = Package(
    name: "postcard-receiving",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "postcard", path: "../..")],
    targets: [
        .executableTarget(
            name: "receiving",
            // The program that it runs is built with it.
            dependencies: [.product(name: "postcard", package: "postcard")],
            resources: [.copy("Yardstick"), .copy("forms.lua")], swiftSettings: settings)
    ],
    swiftLanguageModes: [.v6]
)
