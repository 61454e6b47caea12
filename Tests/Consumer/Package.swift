// swift-tools-version: 6.2

import PackageDescription

/// A program that takes the form and the client, and nothing of the server. Scripts/check-consumer builds it.
let package = Package(
    name: "Consumer",
    platforms: [.macOS(.v15)],
    dependencies: [
        // The name lets the package be found by it in whatever folder it lies.
        .package(name: "postcard", path: "../..", traits: [])
    ],
    targets: [
        .executableTarget(
            name: "Consumer",
            dependencies: [
                .product(name: "PostcardForm", package: "postcard"),
                .product(name: "PostcardClient", package: "postcard"),
            ])
    ]
)
