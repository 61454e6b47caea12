// swift-tools-version: 6.2

import AppleProductTypes
import PackageDescription

/// An app for iPhone and iPad. Only Xcode and Swift Playground know `AppleProductTypes`, so `swift build` cannot read this
/// manifest.
let package = Package(
    name: "PetDiary",
    platforms: [.iOS("18.0")],
    products: [
        .iOSApplication(
            name: "PetDiary",
            targets: ["PetDiary"],
            bundleIdentifier: "com.example.PetDiary",
            displayVersion: "1.0",
            bundleVersion: "1",
            appIcon: .placeholder(icon: .dog),
            accentColor: .presetColor(.orange),
            supportedDeviceFamilies: [.phone, .pad],
            supportedInterfaceOrientations: [
                .portrait, .landscapeLeft, .landscapeRight, .portraitUpsideDown(.when(deviceFamilies: [.pad])),
            ],
            capabilities: [
                // Allows plain HTTP to the names and addresses of a local network. A server on the internet uses HTTPS and
                // needs neither of these two.
                .appTransportSecurity(configuration: .init(allowsLocalNetworking: true)),
                .localNetwork(purposeString: "Your diary is sent to the computer that keeps it."),
            ])
    ],
    dependencies: [
        // Manifests can name traits since tools version 6.1, those of app packages too; Xcode follows them since 26.4. The
        // app needs the queue alone, and an Xcode that knows no traits fetches the packages of the server as well.
        .package(name: "postcard", path: "../..", traits: ["Queue"])
    ],
    targets: [
        .executableTarget(
            name: "PetDiary",
            dependencies: [
                .product(name: "PostcardClient", package: "postcard"),
                .product(name: "PostcardForm", package: "postcard"),
                .product(name: "PostcardPictures", package: "postcard"),
                .product(name: "PostcardQueue", package: "postcard"),
            ],
            path: "Sources")
    ],
    swiftLanguageModes: [.v6]
)
