// swift-tools-version: 6.2

import PackageDescription

// The Doctor as a module of a web page, from the sources of the package: folders that Embedded Swift can compile, and small
// stand-ins for what they use of Foundation, HTTPTypes and Crypto.
let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"), .enableUpcomingFeature("ExistentialAny"),
    .enableExperimentalFeature("Embedded"), .enableExperimentalFeature("Extern"),
    .unsafeFlags(["-Osize", "-enforce-exclusivity=unchecked"]),
]

let package = Package(
    name: "Page",
    targets: [
        .target(name: "PostcardFoundation", swiftSettings: settings),
        .target(name: "HTTPTypes", swiftSettings: settings),
        .target(name: "PostcardCLibrary", swiftSettings: settings),
        .target(name: "Crypto", swiftSettings: settings),
        .target(name: "PostcardPictureFormats", dependencies: ["PostcardFoundation"], swiftSettings: settings),
        .target(
            name: "PostcardForm",
            dependencies: ["PostcardCLibrary", "PostcardFoundation", "HTTPTypes", "PostcardPictureFormats"],
            swiftSettings: settings),
        .target(
            name: "PostcardDoctor",
            dependencies: ["PostcardFoundation", "HTTPTypes", "Crypto", "PostcardForm", "PostcardPictureFormats"],
            swiftSettings: settings),
        .target(name: "Runtime", cSettings: [.unsafeFlags(["-fno-builtin", "-ffreestanding", "-O2"])]),
        .executableTarget(
            name: "Page", dependencies: ["PostcardDoctor", "PostcardForm", "PostcardFoundation", "Runtime"],
            swiftSettings: settings,
            linkerSettings: [
                .unsafeFlags([
                    "-Xclang-linker", "-nostdlib", "-Xlinker", "--no-entry", "-Xlinker", "-z", "-Xlinker",
                    "stack-size=1048576", "-Xlinker", "--gc-sections", "-Xlinker", "--strip-all",
                ])
            ]),
    ]
)
