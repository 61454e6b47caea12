// swift-tools-version: 6.2

import PackageDescription

/// What the app, the share extension and the Live Activity have in common: everything but screens. The package's tests run
/// it on Linux too.
let package = Package(
    name: "DiaryKit",
    defaultLocalization: "en",
    platforms: [.iOS(.v18)],
    products: [.library(name: "DiaryKit", targets: ["DiaryKit"])],
    dependencies: [
        // Manifests can name traits since tools version 6.1; Xcode follows them since 26.4. The app needs the queue alone,
        // and an Xcode that knows no traits fetches the packages of the server as well.
        .package(name: "postcard", path: "../../..", traits: ["Queue"])
    ],
    targets: [
        .target(
            name: "DiaryKit",
            dependencies: [
                .product(name: "PostcardForm", package: "postcard"),
                .product(name: "PostcardQueue", package: "postcard"),
            ],
            resources: [.process("Localizable.xcstrings")],
            swiftSettings: [
                .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("InternalImportsByDefault"),
                .enableUpcomingFeature("MemberImportVisibility"),
                .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
