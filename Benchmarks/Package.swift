// swift-tools-version: 6.2

import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

/// How fast Postcard is, and how much memory it takes; see README.md.
let package = Package(
    name: "postcard-benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "postcard", path: "..", traits: []),
        // Without its traits, which count allocations, it needs nothing that would have to be installed.
        .package(url: "https://github.com/ordo-one/benchmark.git", from: "1.38.1", traits: []),
    ],
    targets: [
        .target(name: "Memmem"),
        .target(name: "MemoryMeter"),
        .target(
            name: "Bodies",
            dependencies: ["Memmem", .product(name: "PostcardForm", package: "postcard")],
            swiftSettings: settings),
        .executableTarget(
            name: "compare",
            dependencies: ["Bodies", .product(name: "PostcardForm", package: "postcard")],
            swiftSettings: settings),
        .executableTarget(
            name: "memory",
            dependencies: ["Bodies", "MemoryMeter", .product(name: "PostcardForm", package: "postcard")],
            swiftSettings: settings),
        .executableTarget(
            name: "Parsing",
            dependencies: ["Bodies", .product(name: "Benchmark", package: "benchmark")],
            path: "Benchmarks/Parsing",
            swiftSettings: settings,
            plugins: [.plugin(name: "BenchmarkPlugin", package: "benchmark")]),
    ],
    swiftLanguageModes: [.v6]
)
