// swift-tools-version: 6.2

import PackageDescription

/// One list for every target: the house style is stricter than the compiler's defaults.
let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

/// A package that only some traits need is not fetched if they are off. The program needs all of them. Its trait does
/// not enable the others: each enabled trait is an option of the compiler, and SwiftPM 6.3 writes several of them in a
/// new order each time it runs, after which every module is compiled again.
let forAsyncHTTP: TargetDependencyCondition? = .when(traits: ["AsyncHTTP", "CommandLine"])
let forStore: TargetDependencyCondition? = .when(traits: ["Store", "Server", "S3", "CommandLine"])
let forServer: TargetDependencyCondition? = .when(traits: ["Server", "CommandLine"])
let forS3: TargetDependencyCondition? = .when(traits: ["S3", "CommandLine"])
let forTLS: TargetDependencyCondition? = .when(traits: ["TLS", "CommandLine"])
let forQueue: TargetDependencyCondition? = .when(traits: ["Queue", "CommandLine"])
let forTracing: TargetDependencyCondition? = .when(traits: ["Tracing", "CommandLine"])
let forCommandLine: TargetDependencyCondition? = .when(traits: ["CommandLine"])

/// A package that depends on this one gets what an app needs, if it names no traits. A clone of the repository builds
/// everything, which is the only place for the program and the tests. SwiftPM reads the manifest of a dependency from its
/// Git repository, where it is at `/`, and then from a copy in a folder `checkouts`, as Xcode does. Nothing else in a
/// manifest tells a dependency from a clone; one by `path:` counts as a clone.
let isDependency = Context.packageDirectory == "/" || Context.packageDirectory.contains("/checkouts/")

/// The files of the receiver's page, which are part of the program.
let pageFiles: [Resource] = [
    "bytes.js", "compose.js", "elements.js", "icon.svg", "page.css", "page.html", "page.js", "problems.ko.json",
    "received.js", "requests.js", "server.js", "texts.en.json", "texts.ko.json",
].map { .embedInCode("Page/Web/\($0)") }

/// What an app gets besides the code: texts in its languages, and privacy manifests. They are left out on Linux, where
/// nothing reads them, and where the accessor that SwiftPM writes for resources would need all of Foundation.
#if os(macOS)
func forApps(_ files: String...) -> [Resource] { files.map { .process("Resources/\($0)") } }
let leftOut: [String] = []
let texts: [Resource] = [.process("Localizable.xcstrings")]
let textsLeftOut: [String] = []
#else
func forApps(_ files: String...) -> [Resource] { [] }
let leftOut = ["Resources"]
let texts: [Resource] = []
let textsLeftOut = ["Localizable.xcstrings"]
#endif

let package = Package(
    name: "postcard",
    defaultLocalization: "en",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "PostcardForm", targets: ["PostcardForm"]),
        .library(name: "PostcardDoctor", targets: ["PostcardDoctor"]),
        .library(name: "PostcardClient", targets: ["PostcardClient"]),
        .library(name: "PostcardAsyncHTTP", targets: ["PostcardAsyncHTTP"]),
        .library(name: "PostcardQueue", targets: ["PostcardQueue"]),
        .library(name: "PostcardPictures", targets: ["PostcardPictures"]),
        .library(name: "PostcardTesting", targets: ["PostcardTesting"]),
        .library(name: "PostcardQueueTesting", targets: ["PostcardQueueTesting"]),
        .library(name: "PostcardStore", targets: ["PostcardStore"]),
        .library(name: "PostcardReception", targets: ["PostcardReception"]),
        .library(name: "PostcardServer", targets: ["PostcardServer"]),
        .library(name: "PostcardS3", targets: ["PostcardS3"]),
        .library(name: "PostcardReceiver", targets: ["PostcardReceiver"]),
        .library(name: "PostcardServerTesting", targets: ["PostcardServerTesting"]),
        .executable(name: "postcard", targets: ["postcard"]),
    ],
    traits: [
        .trait(name: "AsyncHTTP", description: "PostcardAsyncHTTP, and with it AsyncHTTPClient and SwiftNIO"),
        .trait(
            name: "Server", description: "PostcardServer and PostcardReceiver, and with them Hummingbird and SwiftNIO"),
        .trait(
            name: "Store",
            description: "PostcardStore and PostcardReception, and with them SwiftNIO's buffers and threads"),
        .trait(
            name: "TLS",
            description: "HTTPS and HTTP/2 for PostcardServer and PostcardReceiver, and with them SwiftNIO SSL"),
        .trait(
            name: "S3",
            description: "PostcardS3 and PostcardStore, and with them AsyncHTTPClient and SwiftNIO"),
        .trait(
            name: "Tracing", description: "Spans of PostcardClient's requests, and with them swift-distributed-tracing"),
        .trait(name: "Queue", description: "PostcardQueue, and with it GRDB and SQLite"),
        .trait(name: "CommandLine", description: "The postcard program, and what the other traits add"),
        .default(enabledTraits: isDependency ? ["Queue"] : ["CommandLine"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-http-types.git", from: "1.8.0", traits: []),
        .package(url: "https://github.com/apple/swift-system.git", from: "1.8.1"),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.14.0"),
        .package(url: "https://github.com/apple/swift-metrics.git", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing.git", from: "1.7.3"),
        .package(url: "https://github.com/apple/swift-configuration.git", from: "1.4.0"),
        // SwiftPM fetches it for Apple platforms too, whatever a condition says. There it forwards to CryptoKit.
        .package(url: "https://github.com/apple/swift-crypto.git", "3.12.3"..<"5.0.0"),
        .package(url: "https://github.com/apple/swift-nio.git", from: "2.101.0"),
        .package(url: "https://github.com/apple/swift-nio-http2.git", from: "1.38.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl.git", from: "2.36.0"),
        .package(url: "https://github.com/apple/swift-argument-parser.git", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-nio-extras.git", from: "1.35.2"),
        // PostcardAsyncHTTP adds handlers to its connections, which a new minor version may break.
        .package(url: "https://github.com/swift-server/async-http-client.git", .upToNextMinor(from: "1.37.0")),
        .package(url: "https://github.com/groue/GRDB.swift.git", from: "7.10.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.28.1", traits: []),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.13.0"),
    ],
    targets: [
        // The C library of each platform. No user needs it.
        .target(name: "PostcardCLibrary", swiftSettings: settings),
        // FoundationEssentials, or Foundation where that does not exist. No user needs it.
        .target(name: "PostcardFoundation", swiftSettings: settings),
        // What several modules know about the files of pictures. No user needs it.
        .target(name: "PostcardPictureFormats", swiftSettings: settings),
        .target(
            name: "PostcardForm",
            dependencies: [
                "PostcardCLibrary", "PostcardFoundation", "PostcardPictureFormats",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            exclude: leftOut, resources: forApps("PrivacyInfo.xcprivacy"), swiftSettings: settings),
        .target(
            name: "PostcardFiles",
            dependencies: ["PostcardCLibrary", .product(name: "SystemPackage", package: "swift-system")],
            exclude: leftOut, resources: forApps("PrivacyInfo.xcprivacy"), swiftSettings: settings),
        .target(
            name: "PostcardDoctor",
            dependencies: [
                "PostcardForm", "PostcardFoundation", "PostcardPictureFormats",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            swiftSettings: settings),
        .target(
            name: "PostcardWire",
            dependencies: ["PostcardFoundation", .product(name: "HTTPTypes", package: "swift-http-types")],
            swiftSettings: settings),
        .target(
            name: "PostcardClient",
            dependencies: [
                "PostcardForm", "PostcardFoundation", "PostcardWire",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "SystemPackage", package: "swift-system"),
                .product(name: "Tracing", package: "swift-distributed-tracing", condition: forTracing),
            ],
            exclude: leftOut, resources: forApps("Localizable.xcstrings"), swiftSettings: settings),
        .target(
            name: "PostcardAsyncHTTP",
            dependencies: [
                "PostcardCLibrary", "PostcardClient", "PostcardForm", "PostcardFoundation",
                .product(name: "AsyncHTTPClient", package: "async-http-client", condition: forAsyncHTTP),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio", condition: forAsyncHTTP),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: forAsyncHTTP),
                .product(name: "NIOHTTP2", package: "swift-nio-http2", condition: forAsyncHTTP),
                .product(name: "NIOPosix", package: "swift-nio", condition: forAsyncHTTP),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: forAsyncHTTP),
            ],
            swiftSettings: settings),
        // For the tests of apps: it imports XCTest and Testing where they are.
        .target(
            name: "PostcardTesting",
            dependencies: [
                "PostcardClient", "PostcardDoctor", "PostcardForm", "PostcardFoundation", "PostcardWire",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            swiftSettings: settings),
        .target(
            name: "PostcardQueue",
            dependencies: [
                "PostcardClient", "PostcardFiles", "PostcardForm", "PostcardFoundation", "PostcardWire",
                .product(name: "GRDB", package: "GRDB.swift", condition: forQueue),
                .product(name: "GRDBSQLite", package: "GRDB.swift", condition: forQueue),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            exclude: leftOut, resources: forApps("Localizable.xcstrings", "PrivacyInfo.xcprivacy"),
            swiftSettings: settings),
        .target(
            name: "PostcardQueueTesting",
            dependencies: [
                "PostcardClient", "PostcardFoundation", "PostcardQueue", "PostcardTesting",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            swiftSettings: settings),
        // URLSession on Linux is made of libcurl, which the program loads when it is used.
        .target(name: "CCurlLoader"),
        // The libraries that decode and encode pictures on Linux, as far as their headers are installed.
        .target(name: "CPictureCodecs"),
        .target(
            name: "PostcardPictures",
            dependencies: [
                "CPictureCodecs", "PostcardCLibrary", "PostcardForm", "PostcardFoundation", "PostcardPictureFormats",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            exclude: leftOut, resources: forApps("Localizable.xcstrings"), swiftSettings: settings),
        .target(
            name: "PostcardStore",
            dependencies: [
                "PostcardFiles", "PostcardForm", "PostcardFoundation",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio", condition: forStore),
                .product(name: "NIOPosix", package: "swift-nio", condition: forStore),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: settings),
        .target(
            name: "PostcardReception",
            dependencies: [
                "PostcardCLibrary", "PostcardForm", "PostcardFoundation", "PostcardStore", "PostcardWire",
                .product(name: "CoreMetrics", package: "swift-metrics", condition: forStore),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio", condition: forStore),
            ],
            swiftSettings: settings),
        .target(
            name: "PostcardServer",
            dependencies: [
                "PostcardCLibrary", "PostcardFiles", "PostcardForm", "PostcardFoundation", "PostcardWire",
                "PostcardReception", "PostcardStore",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Hummingbird", package: "hummingbird", condition: forServer),
                .product(name: "HummingbirdCore", package: "hummingbird", condition: forServer),
                .product(name: "HummingbirdHTTP2", package: "hummingbird", condition: forTLS),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio", condition: forServer),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: forServer),
                .product(name: "NIOHTTP2", package: "swift-nio-http2", condition: forTLS),
                .product(name: "NIOHTTPTypes", package: "swift-nio-extras", condition: forServer),
                .product(name: "NIOHTTPTypesHTTP2", package: "swift-nio-extras", condition: forTLS),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: forTLS),
                .product(name: "NIOTLS", package: "swift-nio", condition: forServer),
                .product(
                    name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: forServer),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: settings),
        .target(
            name: "PostcardS3",
            dependencies: [
                "PostcardForm", "PostcardFoundation", "PostcardStore",
                .target(name: "PostcardServer", condition: forServer),
                .product(name: "AsyncHTTPClient", package: "async-http-client", condition: forS3),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Hummingbird", package: "hummingbird", condition: forServer),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio", condition: forS3),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: forS3),
                .product(name: "Tracing", package: "swift-distributed-tracing", condition: forS3),
            ],
            swiftSettings: settings),
        .target(
            name: "PostcardReceiver",
            dependencies: [
                "PostcardCLibrary", "PostcardDoctor", "PostcardFiles", "PostcardForm", "PostcardFoundation",
                "PostcardServer",
                .product(name: "CoreMetrics", package: "swift-metrics", condition: forServer),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Hummingbird", package: "hummingbird", condition: forServer),
                .product(name: "HummingbirdCore", package: "hummingbird", condition: forServer),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio", condition: forServer),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: forTLS),
                .product(
                    name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: forServer),
                .product(name: "SystemPackage", package: "swift-system"),
                .product(name: "Tracing", package: "swift-distributed-tracing", condition: forServer),
                .product(name: "UnixSignals", package: "swift-service-lifecycle", condition: forServer),
            ],
            resources: pageFiles, swiftSettings: settings),
        .target(
            name: "PostcardServerTesting",
            dependencies: [
                "PostcardStore", .product(name: "NIOCore", package: "swift-nio", condition: forStore),
            ],
            swiftSettings: settings),
        // What the program checks of other servers.
        .target(
            name: "PostcardConformance",
            dependencies: [
                "PostcardForm", "PostcardFoundation", "PostcardWire",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio", condition: forCommandLine),
                .product(name: "NIOPosix", package: "swift-nio", condition: forCommandLine),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: forCommandLine),
            ],
            swiftSettings: settings),
        .executableTarget(
            name: "postcard",
            dependencies: [
                "CCurlLoader", "PostcardCLibrary", "PostcardConformance", "PostcardForm", "PostcardFoundation",
                "PostcardDemo", "PostcardDoctor", "PostcardClient", "PostcardAsyncHTTP", "PostcardFiles",
                "PostcardPictures", "PostcardQueue", "PostcardServer", "PostcardReceiver", "PostcardS3",
                "PostcardWire",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "AsyncHTTPClient", package: "async-http-client", condition: forCommandLine),
                .product(name: "Configuration", package: "swift-configuration", condition: forCommandLine),
                .product(name: "NIOCore", package: "swift-nio", condition: forCommandLine),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: forCommandLine),
                .product(name: "NIOPosix", package: "swift-nio", condition: forCommandLine),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: forCommandLine),
                .product(name: "SystemPackage", package: "swift-system"),
                .product(
                    name: "ArgumentParser", package: "swift-argument-parser", condition: forCommandLine),
                .product(
                    name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: forCommandLine),
                .product(name: "UnixSignals", package: "swift-service-lifecycle", condition: forCommandLine),
            ],
            swiftSettings: settings),
        .executableTarget(name: "postcard-demo", dependencies: ["PostcardDemo"], swiftSettings: settings),
        .target(
            name: "PostcardDemo",
            dependencies: [
                "PostcardClient", "PostcardForm", "PostcardSamples", "PostcardServer",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Hummingbird", package: "hummingbird", condition: forServer),
                .product(name: "Logging", package: "swift-log"),
                .product(
                    name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: forServer),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: settings),
        .target(
            name: "PostcardSamples", path: "Samples", exclude: ["PetDiary", "draw", "drawing"],
            resources: [.copy("Pictures")], swiftSettings: settings),
        // What the app in Samples/PetDiary decides, for its tests. The app has it as a package of its own.
        .target(
            name: "DiaryKit", dependencies: ["PostcardForm", "PostcardQueue"],
            path: "Samples/PetDiary/Kit/Sources/DiaryKit", exclude: textsLeftOut, resources: texts,
            swiftSettings: settings),
        .target(
            name: "PostcardTestSupport",
            dependencies: [
                .product(name: "NIOCore", package: "swift-nio", condition: forAsyncHTTP),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: forAsyncHTTP),
                .product(name: "NIOPosix", package: "swift-nio", condition: forAsyncHTTP),
                .product(name: "Tracing", package: "swift-distributed-tracing", condition: forTracing),
            ],
            path: "Tests/Support", swiftSettings: settings),
        .target(
            name: "PostcardSendingSupport",
            dependencies: ["PostcardAsyncHTTP", "PostcardClient", "PostcardForm", "PostcardTestSupport"],
            path: "Tests/SendingSupport", swiftSettings: settings),
        .target(
            name: "PostcardTransferDaemon",
            dependencies: [
                "PostcardClient", "PostcardForm", "PostcardFoundation", "PostcardQueue", "PostcardTestSupport",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            path: "Tests/TransferDaemon",
            exclude: ["README.md", "app.py", "carrying.py", "daemon.py", "seeds", "session.py"],
            swiftSettings: settings),
        .executableTarget(
            name: "PostcardBackgroundApp",
            dependencies: [
                "PostcardClient", "PostcardForm", "PostcardFoundation", "PostcardQueue", "PostcardTransferDaemon",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            path: "Tests/BackgroundApp", swiftSettings: settings),
        .executableTarget(
            name: "PostcardQueueVictim", dependencies: ["PostcardAsyncHTTP", "PostcardClient", "PostcardQueue"],
            path: "Tests/QueueVictim", exclude: ["mutate.py", "mutations.py", "queues.py"],
            swiftSettings: settings),
        // Receivers that share a bucket, on a simulated clock, network and object store.
        .executableTarget(
            name: "PostcardSimulator",
            dependencies: [
                "PostcardForm", "PostcardS3", "PostcardServer", "PostcardStore",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio", condition: forS3),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: forS3),
            ],
            path: "Tests/Simulator", exclude: ["simulate"], swiftSettings: settings),
        .testTarget(name: "PostcardFoundationTests", dependencies: ["PostcardFoundation"], swiftSettings: settings),
        .testTarget(
            name: "PostcardPictureFormatsTests", dependencies: ["PostcardPictureFormats"], swiftSettings: settings),
        .testTarget(
            name: "PostcardFormTests",
            dependencies: [
                "PostcardForm", "PostcardPictureFormats", "PostcardTestSupport",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "DiaryKitTests",
            dependencies: [
                "DiaryKit", "PostcardClient", "PostcardForm", "PostcardQueue", "PostcardQueueTesting",
                "PostcardTestSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "PostcardFilesTests",
            dependencies: [
                "PostcardFiles", "PostcardTestSupport", .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "PostcardWireTests",
            dependencies: ["PostcardWire", .product(name: "HTTPTypes", package: "swift-http-types")],
            swiftSettings: settings),
        .testTarget(
            name: "PostcardConformanceTests",
            dependencies: [
                "PostcardConformance", "PostcardWire", "PostcardTestSupport", "postcard",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio", condition: forAsyncHTTP),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: forAsyncHTTP),
                .product(name: "NIOHTTPTypes", package: "swift-nio-extras", condition: forAsyncHTTP),
                .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras", condition: forAsyncHTTP),
                .product(name: "NIOPosix", package: "swift-nio", condition: forAsyncHTTP),
                .product(name: "NIOResumableUpload", package: "swift-nio-extras", condition: forAsyncHTTP),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "PostcardDoctorTests", dependencies: ["PostcardDoctor", "PostcardForm", "PostcardTestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "PostcardCommandTests",
            dependencies: [
                "PostcardAsyncHTTP", "PostcardClient", "PostcardDoctor", "PostcardForm", "PostcardPictures",
                "PostcardQueue", "PostcardReceiver", "PostcardReception", "PostcardS3", "PostcardSamples",
                "PostcardServer",
                "PostcardStore", "PostcardTestSupport", "postcard",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Hummingbird", package: "hummingbird", condition: forServer),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio", condition: forServer),
                .product(
                    name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: forServer),
                .product(name: "Tracing", package: "swift-distributed-tracing", condition: forTracing),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "PostcardClientTests",
            dependencies: [
                "PostcardAsyncHTTP", "PostcardClient", "PostcardForm", "PostcardFoundation", "PostcardWire",
                "PostcardSendingSupport", "PostcardTestSupport", "PostcardTesting",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio", condition: forAsyncHTTP),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: forAsyncHTTP),
                .product(name: "NIOHTTPTypes", package: "swift-nio-extras", condition: forAsyncHTTP),
                .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras", condition: forAsyncHTTP),
                .product(name: "NIOPosix", package: "swift-nio", condition: forAsyncHTTP),
                .product(name: "NIOResumableUpload", package: "swift-nio-extras", condition: forAsyncHTTP),
                .product(name: "Tracing", package: "swift-distributed-tracing", condition: forTracing),
            ],
            swiftSettings: settings),
        // What the client's tests do without: the program, and with it all other modules.
        .testTarget(
            name: "PostcardEndToEndTests",
            dependencies: [
                "PostcardAsyncHTTP", "PostcardClient", "PostcardForm", "PostcardSendingSupport", "PostcardTestSupport",
                "postcard",
                .product(name: "AsyncHTTPClient", package: "async-http-client", condition: forAsyncHTTP),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: forAsyncHTTP),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "PostcardAsyncHTTPTests",
            dependencies: [
                "PostcardAsyncHTTP", "PostcardClient", "PostcardForm",
                .product(name: "AsyncHTTPClient", package: "async-http-client", condition: forAsyncHTTP),
                .product(name: "NIOCore", package: "swift-nio", condition: forAsyncHTTP),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: forAsyncHTTP),
                .product(name: "NIOPosix", package: "swift-nio", condition: forAsyncHTTP),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "PostcardQueueTests",
            dependencies: [
                "PostcardAsyncHTTP", "PostcardBackgroundApp", "PostcardClient", "PostcardForm", "PostcardFoundation",
                "PostcardQueue", "PostcardQueueVictim", "PostcardTestSupport", "PostcardTransferDaemon", "postcard",
                .product(name: "GRDB", package: "GRDB.swift", condition: forQueue),
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "PostcardTestingTests",
            dependencies: [
                "PostcardClient", "PostcardForm", "PostcardTesting",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "PostcardQueueTestingTests",
            dependencies: [
                "PostcardClient", "PostcardForm", "PostcardFoundation", "PostcardQueue", "PostcardQueueTesting",
                "PostcardTestSupport", "PostcardTesting", "PostcardTransferDaemon",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio", condition: forAsyncHTTP),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: forAsyncHTTP),
                .product(name: "NIOPosix", package: "swift-nio", condition: forAsyncHTTP),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "PostcardPicturesTests",
            dependencies: [
                "PostcardForm", "PostcardFoundation", "PostcardPictureFormats", "PostcardPictures",
                "PostcardTestSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "PostcardS3Tests",
            dependencies: [
                "PostcardAsyncHTTP", "PostcardClient", "PostcardForm", "PostcardReceiver", "PostcardS3",
                "PostcardServer", "PostcardServerTesting", "PostcardSimulator", "PostcardStore", "PostcardTestSupport",
                "postcard",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Hummingbird", package: "hummingbird", condition: forServer),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio", condition: forS3),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: forS3),
                .product(
                    name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: forServer),
                .product(name: "Tracing", package: "swift-distributed-tracing", condition: forS3),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "PostcardServerTests",
            dependencies: [
                "PostcardFiles", "PostcardForm", "PostcardReceiver", "PostcardReception", "PostcardServer",
                "PostcardWire",
                "PostcardServerTesting", "PostcardStore", "PostcardTestSupport", "postcard",
                .product(name: "CoreMetrics", package: "swift-metrics", condition: forServer),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Hummingbird", package: "hummingbird", condition: forServer),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "MetricsTestKit", package: "swift-metrics", condition: forServer),
                .product(name: "NIOCore", package: "swift-nio", condition: forServer),
                .product(name: "NIOEmbedded", package: "swift-nio", condition: forServer),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: forServer),
                .product(name: "NIOHTTPTypes", package: "swift-nio-extras", condition: forServer),
                .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras", condition: forServer),
                .product(name: "NIOPosix", package: "swift-nio", condition: forServer),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: forTLS),
                .product(
                    name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: forServer),
                .product(name: "SystemPackage", package: "swift-system"),
                .product(name: "Tracing", package: "swift-distributed-tracing", condition: forServer),
            ],
            swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)
