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
let asyncHTTP = TargetDependencyCondition.when(traits: ["AsyncHTTP", "CommandLine"])
let store = TargetDependencyCondition.when(traits: ["Store", "Server", "S3", "CommandLine"])
let server = TargetDependencyCondition.when(traits: ["Server", "CommandLine"])
let s3 = TargetDependencyCondition.when(traits: ["S3", "CommandLine"])
let tls = TargetDependencyCondition.when(traits: ["TLS", "CommandLine"])
let queue = TargetDependencyCondition.when(traits: ["Queue", "CommandLine"])
let tracing = TargetDependencyCondition.when(traits: ["Tracing", "CommandLine"])
let commandLine = TargetDependencyCondition.when(traits: ["CommandLine"])

/// What the modules use of other packages, by package.
let packages = [
    "GRDB.swift": ["GRDB", "GRDBSQLite"],
    "async-http-client": ["AsyncHTTPClient"],
    "hummingbird": ["Hummingbird", "HummingbirdCore", "HummingbirdHTTP2"],
    "swift-argument-parser": ["ArgumentParser"],
    "swift-configuration": ["Configuration"],
    "swift-crypto": ["Crypto"],
    "swift-distributed-tracing": ["Tracing"],
    "swift-http-types": ["HTTPTypes"],
    "swift-log": ["Logging"],
    "swift-metrics": ["CoreMetrics", "MetricsTestKit"],
    "swift-nio": ["NIOCore", "NIOEmbedded", "NIOHTTP1", "NIOPosix", "NIOTLS"],
    "swift-nio-extras": ["NIOHTTPTypes", "NIOHTTPTypesHTTP1", "NIOHTTPTypesHTTP2", "NIOResumableUpload"],
    "swift-nio-http2": ["NIOHTTP2"],
    "swift-nio-ssl": ["NIOSSL"],
    "swift-service-lifecycle": ["ServiceLifecycle", "UnixSignals"],
    "swift-system": ["SystemPackage"],
]

/// Products of other packages, which are fetched under a condition, or always.
func products(_ names: String..., when condition: TargetDependencyCondition? = nil) -> [Target.Dependency] {
    names.map { name in
        let package = packages.first { $0.value.contains(name) }?.key ?? "packages lacks \(name)"
        return .product(name: name, package: package, condition: condition)
    }
}

/// The folders of Sources and of Tests. A module uses modules of its own wing and of those above it in this list, and
/// Sending and Receiving do not know each other.
enum Wing: String {
    case common = "Common"
    case forms = "Forms"
    case sending = "Sending"
    case receiving = "Receiving"
    case program = "Program"
}

extension Target {
    static func module(
        _ name: String, in wing: Wing, uses modules: [Dependency] = [], products: [Dependency] = [],
        exclude: [String] = [], resources: [Resource] = []
    ) -> Target {
        .module(
            name, at: "Sources/\(wing.rawValue)/\(name)", uses: modules, products: products, exclude: exclude,
            resources: resources)
    }

    static func program(
        _ name: String, in wing: Wing, uses modules: [Dependency], products: [Dependency] = []
    ) -> Target {
        .program(name, at: "Sources/\(wing.rawValue)/\(name)", uses: modules, products: products)
    }

    static func tests(_ name: String, in wing: Wing, uses modules: [Dependency], products: [Dependency] = []) -> Target
    {
        .testTarget(
            name: name, dependencies: modules + products, path: "Tests/\(wing.rawValue)/\(name)",
            swiftSettings: settings)
    }

    static func module(
        _ name: String, at path: String, uses modules: [Dependency] = [], products: [Dependency] = [],
        exclude: [String] = [], resources: [Resource] = []
    ) -> Target {
        .target(
            name: name, dependencies: modules + products, path: path, exclude: exclude, resources: resources,
            swiftSettings: settings)
    }

    static func program(
        _ name: String, at path: String, uses modules: [Dependency], products: [Dependency] = [],
        exclude: [String] = []
    ) -> Target {
        .executableTarget(
            name: name, dependencies: modules + products, path: path, exclude: exclude, swiftSettings: settings)
    }
}

/// A package that depends on this one gets what an app needs, if it names no traits. A clone of the repository builds
/// everything, which is the only place for the program and the tests. SwiftPM reads the manifest of a dependency from its
/// Git repository, where it is at `/`, and then from a copy in a folder `checkouts`, as Xcode does. Nothing else in a
/// manifest tells a dependency from a clone; one by `path:` counts as a clone.
let isDependency = Context.packageDirectory == "/" || Context.packageDirectory.contains("/checkouts/")

/// The files of the receiver's page, which are part of the program.
let pageFiles: [Resource] = [
    "bytes.js", "compose.js", "elements.js", "explained.js", "icon.svg", "page.css", "page.html", "page.js",
    "problems.ko.json", "received.js", "requests.js", "server.js", "texts.en.json", "texts.ko.json",
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
        // MARK: Common: what the other wings stand on
        // The C library of each platform. No user needs it.
        .module("PostcardCLibrary", in: .common),
        // What all modules use: parts of Foundation, bytes from clients as text, time limits. Apps do not import it.
        .module("PostcardFoundation", in: .common),
        // What both ends of an upload agree on. No user needs it.
        .module("PostcardWire", in: .common, uses: ["PostcardFoundation"], products: products("HTTPTypes")),
        // Durable writes and locks. No user needs it.
        .module(
            "PostcardFiles", in: .common, uses: ["PostcardCLibrary"], products: products("SystemPackage"),
            exclude: leftOut, resources: forApps("PrivacyInfo.xcprivacy")),
        // What several modules know about the files of pictures. No user needs it.
        .module("PostcardPictureFormats", in: .common),
        // MARK: Forms: the format, and what is wrong with a request
        .module(
            "PostcardForm", in: .forms, uses: ["PostcardCLibrary", "PostcardFoundation", "PostcardPictureFormats"],
            products: products("HTTPTypes", "SystemPackage"), exclude: leftOut,
            resources: forApps("PrivacyInfo.xcprivacy")),
        .module(
            "PostcardDoctor", in: .forms, uses: ["PostcardForm", "PostcardFoundation", "PostcardPictureFormats"],
            products: products("Crypto", "HTTPTypes")),
        // MARK: Sending
        .module(
            "PostcardClient", in: .sending, uses: ["PostcardForm", "PostcardFoundation", "PostcardWire"],
            products: products("Crypto", "HTTPTypes", "Logging", "SystemPackage") + products("Tracing", when: tracing),
            exclude: leftOut, resources: forApps("Localizable.xcstrings")),
        .module(
            "PostcardAsyncHTTP", in: .sending,
            uses: ["PostcardCLibrary", "PostcardClient", "PostcardForm", "PostcardFoundation"],
            products: products("HTTPTypes")
                + products("AsyncHTTPClient", "NIOCore", "NIOHTTP1", "NIOHTTP2", "NIOPosix", "NIOSSL", when: asyncHTTP)),
        // For the tests of apps: these two import XCTest and Testing where they are.
        .module(
            "PostcardTesting", in: .sending,
            uses: ["PostcardClient", "PostcardDoctor", "PostcardForm", "PostcardFoundation", "PostcardWire"],
            products: products("HTTPTypes")),
        .module(
            "PostcardQueue", in: .sending,
            uses: ["PostcardClient", "PostcardFiles", "PostcardForm", "PostcardFoundation", "PostcardWire"],
            products: products("HTTPTypes", "SystemPackage") + products("GRDB", "GRDBSQLite", when: queue),
            exclude: leftOut, resources: forApps("Localizable.xcstrings", "PrivacyInfo.xcprivacy")),
        .module(
            "PostcardQueueTesting", in: .sending,
            uses: ["PostcardClient", "PostcardFoundation", "PostcardQueue", "PostcardTesting"],
            products: products("HTTPTypes")),
        // The libraries that decode and encode pictures on Linux, as far as their headers are installed.
        .module("CPictureCodecs", in: .sending),
        .module(
            "PostcardPictures", in: .sending,
            uses: [
                "CPictureCodecs", "PostcardCLibrary", "PostcardForm", "PostcardFoundation", "PostcardPictureFormats",
            ], products: products("SystemPackage"), exclude: leftOut, resources: forApps("Localizable.xcstrings")),
        // MARK: Receiving
        .module(
            "PostcardStore", in: .receiving, uses: ["PostcardFiles", "PostcardForm", "PostcardFoundation"],
            products: products("Crypto", "HTTPTypes", "Logging", "SystemPackage")
                + products("NIOCore", "NIOPosix", when: store)),
        .module(
            "PostcardReception", in: .receiving,
            uses: ["PostcardCLibrary", "PostcardForm", "PostcardFoundation", "PostcardStore", "PostcardWire"],
            products: products("Crypto", "HTTPTypes", "Logging") + products("CoreMetrics", "NIOCore", when: store)),
        .module(
            "PostcardServer", in: .receiving,
            uses: [
                "PostcardCLibrary", "PostcardFiles", "PostcardForm", "PostcardFoundation", "PostcardWire",
                "PostcardReception", "PostcardStore",
            ],
            products: products("Crypto", "HTTPTypes", "Logging", "SystemPackage")
                + products(
                    "Hummingbird", "HummingbirdCore", "NIOCore", "NIOHTTP1", "NIOHTTPTypes", "NIOTLS",
                    "ServiceLifecycle", when: server)
                + products("HummingbirdHTTP2", "NIOHTTP2", "NIOHTTPTypesHTTP2", "NIOSSL", when: tls)),
        .module(
            "PostcardS3", in: .receiving,
            uses: ["PostcardForm", "PostcardFoundation", "PostcardStore", "PostcardWire"] + [
                .target(name: "PostcardReception", condition: server),
                .target(name: "PostcardServer", condition: server),
            ],
            products: products("Crypto", "HTTPTypes", "Logging")
                + products("AsyncHTTPClient", "NIOCore", "NIOHTTP1", "Tracing", when: s3)
                + products("Hummingbird", when: server)),
        .module(
            "PostcardReceiver", in: .receiving,
            uses: [
                "PostcardCLibrary", "PostcardDoctor", "PostcardFiles", "PostcardForm", "PostcardFoundation",
                "PostcardReception", "PostcardServer", "PostcardWire",
            ],
            products: products("Crypto", "HTTPTypes", "Logging", "SystemPackage")
                + products(
                    "CoreMetrics", "Hummingbird", "HummingbirdCore", "NIOCore", "ServiceLifecycle", "Tracing",
                    "UnixSignals", when: server) + products("NIOSSL", when: tls), resources: pageFiles),
        .module(
            "PostcardServerTesting", in: .receiving, uses: ["PostcardStore"], products: products("NIOCore", when: store)
        ),
        // MARK: Program
        // URLSession on Linux is made of libcurl, which the program loads when it is used.
        .module("CCurlLoader", in: .program),
        // What the program checks of other servers.
        .module(
            "PostcardConformance", in: .program, uses: ["PostcardForm", "PostcardFoundation", "PostcardWire"],
            products: products("Crypto", "HTTPTypes") + products("NIOCore", "NIOPosix", "NIOSSL", when: commandLine)),
        .module(
            "PostcardDemo", in: .program,
            uses: ["PostcardClient", "PostcardForm", "PostcardSamples", "PostcardServer"],
            products: products("Crypto", "Logging", "SystemPackage")
                + products("Hummingbird", "ServiceLifecycle", when: server)),
        .program("postcard-demo", in: .program, uses: ["PostcardDemo"]),
        .program(
            "postcard", in: .program,
            uses: [
                "CCurlLoader", "PostcardCLibrary", "PostcardConformance", "PostcardForm", "PostcardFoundation",
                "PostcardDemo", "PostcardDoctor", "PostcardClient", "PostcardAsyncHTTP", "PostcardFiles",
                "PostcardPictures", "PostcardQueue", "PostcardServer", "PostcardReceiver", "PostcardS3", "PostcardWire",
            ],
            products: products("Crypto", "HTTPTypes", "Logging", "SystemPackage")
                + products(
                    "ArgumentParser", "AsyncHTTPClient", "Configuration", "NIOCore", "NIOHTTP1", "NIOPosix", "NIOSSL",
                    "ServiceLifecycle", "UnixSignals", when: commandLine)),
        // MARK: Samples
        .target(
            name: "PostcardSamples", path: "Samples", exclude: ["PetDiary", "draw", "drawing"],
            resources: [.copy("Pictures")], swiftSettings: settings),
        // What the app in Samples/PetDiary decides, for its tests. The app has it as a package of its own.
        .target(
            name: "DiaryKit", dependencies: ["PostcardForm", "PostcardQueue"],
            path: "Samples/PetDiary/Kit/Sources/DiaryKit", exclude: textsLeftOut, resources: texts,
            swiftSettings: settings),
        // MARK: Tests, and what several of them share
        .module(
            "PostcardTestSupport", at: "Tests/Support",
            products: products("NIOCore", "NIOHTTP1", "NIOPosix", when: asyncHTTP) + products("Tracing", when: tracing)),
        .module(
            "PostcardSendingSupport", at: "Tests/SendingSupport",
            uses: ["PostcardAsyncHTTP", "PostcardClient", "PostcardForm", "PostcardTestSupport"]),
        .module(
            "PostcardReceivingSupport", at: "Tests/ReceivingSupport",
            uses: ["PostcardReceiver", "PostcardServer", "PostcardStore", "PostcardTestSupport"],
            products: products("Crypto", "Logging", "SystemPackage")
                + products("Hummingbird", "NIOCore", "NIOPosix", "ServiceLifecycle", when: server)
                + products("NIOSSL", when: tls)),
        .module(
            "PostcardTransferDaemon", at: "Tests/TransferDaemon",
            uses: ["PostcardClient", "PostcardForm", "PostcardFoundation", "PostcardQueue", "PostcardTestSupport"],
            products: products("HTTPTypes"),
            exclude: ["README.md", "app.py", "carrying.py", "daemon.py", "seeds", "session.py"]),
        .program(
            "PostcardBackgroundApp", at: "Tests/BackgroundApp",
            uses: ["PostcardClient", "PostcardForm", "PostcardFoundation", "PostcardQueue", "PostcardTransferDaemon"],
            products: products("HTTPTypes")),
        .program(
            "PostcardQueueVictim", at: "Tests/QueueVictim",
            uses: ["PostcardAsyncHTTP", "PostcardClient", "PostcardQueue"],
            exclude: ["mutate.py", "mutations.py", "queues.py"]),
        // Receivers that share a bucket, on a simulated clock, network and object store.
        .program(
            "PostcardSimulator", at: "Tests/Simulator",
            uses: ["PostcardForm", "PostcardS3", "PostcardServer", "PostcardStore"],
            products: products("Crypto", "Logging") + products("NIOCore", "NIOHTTP1", when: s3), exclude: ["simulate"]),
        .tests("PostcardFoundationTests", in: .common, uses: ["PostcardFoundation"]),
        .tests("PostcardWireTests", in: .common, uses: ["PostcardWire"], products: products("HTTPTypes")),
        .tests(
            "PostcardFilesTests", in: .common, uses: ["PostcardFiles", "PostcardTestSupport"],
            products: products("SystemPackage")),
        .tests("PostcardPictureFormatsTests", in: .common, uses: ["PostcardPictureFormats"]),
        .tests(
            "PostcardFormTests", in: .forms, uses: ["PostcardForm", "PostcardPictureFormats", "PostcardTestSupport"],
            products: products("HTTPTypes", "SystemPackage")),
        .tests("PostcardDoctorTests", in: .forms, uses: ["PostcardDoctor", "PostcardForm", "PostcardTestSupport"]),
        .tests(
            "PostcardClientTests", in: .sending,
            uses: [
                "PostcardAsyncHTTP", "PostcardClient", "PostcardForm", "PostcardFoundation", "PostcardWire",
                "PostcardSendingSupport", "PostcardTestSupport", "PostcardTesting",
            ],
            products: products("Crypto", "HTTPTypes", "Logging")
                + products(
                    "NIOCore", "NIOHTTP1", "NIOHTTPTypes", "NIOHTTPTypesHTTP1", "NIOPosix", "NIOResumableUpload",
                    when: asyncHTTP) + products("Tracing", when: tracing)),
        .tests(
            "PostcardAsyncHTTPTests", in: .sending, uses: ["PostcardAsyncHTTP", "PostcardClient", "PostcardForm"],
            products: products("AsyncHTTPClient", "NIOCore", "NIOHTTP1", "NIOPosix", when: asyncHTTP)),
        .tests(
            "PostcardTestingTests", in: .sending, uses: ["PostcardClient", "PostcardForm", "PostcardTesting"],
            products: products("HTTPTypes")),
        .tests(
            "PostcardQueueTests", in: .sending,
            uses: [
                "PostcardAsyncHTTP", "PostcardBackgroundApp", "PostcardClient", "PostcardForm", "PostcardFoundation",
                "PostcardQueue", "PostcardQueueVictim", "PostcardTestSupport", "PostcardTransferDaemon", "postcard",
            ], products: products("HTTPTypes") + products("GRDB", when: queue)),
        .tests(
            "PostcardQueueTestingTests", in: .sending,
            uses: [
                "PostcardClient", "PostcardForm", "PostcardFoundation", "PostcardQueue", "PostcardQueueTesting",
                "PostcardTestSupport", "PostcardTesting", "PostcardTransferDaemon",
            ], products: products("HTTPTypes") + products("NIOCore", "NIOHTTP1", "NIOPosix", when: asyncHTTP)),
        .tests(
            "PostcardPicturesTests", in: .sending,
            uses: [
                "PostcardForm", "PostcardFoundation", "PostcardPictureFormats", "PostcardPictures",
                "PostcardTestSupport",
            ]),
        .tests(
            "DiaryKitTests", in: .sending,
            uses: [
                "DiaryKit", "PostcardClient", "PostcardForm", "PostcardQueue", "PostcardQueueTesting",
                "PostcardTestSupport",
            ]),
        .tests(
            "PostcardStoreTests", in: .receiving,
            uses: [
                "PostcardFiles", "PostcardForm", "PostcardReceivingSupport", "PostcardServerTesting", "PostcardStore",
                "PostcardTestSupport", "postcard",
            ], products: products("Crypto", "Logging", "SystemPackage") + products("NIOCore", when: store)),
        .tests(
            "PostcardReceptionTests", in: .receiving,
            uses: [
                "PostcardForm", "PostcardReception", "PostcardReceivingSupport", "PostcardTestSupport", "PostcardWire",
            ], products: products("HTTPTypes", "SystemPackage") + products("NIOCore", "NIOEmbedded", when: store)),
        .tests(
            "PostcardServerTests", in: .receiving,
            uses: [
                "PostcardForm", "PostcardReceiver", "PostcardReception", "PostcardReceivingSupport", "PostcardServer",
                "PostcardTestSupport", "PostcardWire",
            ],
            products: products("Crypto", "HTTPTypes", "Logging", "SystemPackage")
                + products(
                    "Hummingbird", "NIOCore", "NIOEmbedded", "NIOHTTP1", "NIOHTTPTypes", "NIOHTTPTypesHTTP1",
                    "NIOPosix", when: server)),
        .tests(
            "PostcardReceiverTests", in: .receiving,
            uses: [
                "PostcardDoctor", "PostcardForm", "PostcardReceiver", "PostcardReception", "PostcardReceivingSupport",
                "PostcardServer", "PostcardTestSupport",
            ],
            products: products("Crypto", "HTTPTypes", "Logging", "SystemPackage")
                + products("CoreMetrics", "Hummingbird", "MetricsTestKit", "NIOCore", "Tracing", when: server)),
        .tests(
            "PostcardS3Tests", in: .receiving,
            uses: [
                "PostcardAsyncHTTP", "PostcardClient", "PostcardForm", "PostcardReceiver", "PostcardS3",
                "PostcardServer", "PostcardServerTesting", "PostcardSimulator", "PostcardStore", "PostcardTestSupport",
                "postcard",
            ],
            products: products("Crypto", "HTTPTypes", "Logging") + products("NIOCore", "NIOHTTP1", "Tracing", when: s3)
                + products("Hummingbird", "ServiceLifecycle", when: server)),
        .tests(
            "PostcardConformanceTests", in: .program,
            uses: ["PostcardConformance", "PostcardWire", "PostcardTestSupport", "postcard"],
            products: products("Crypto", "HTTPTypes")
                + products(
                    "NIOCore", "NIOHTTP1", "NIOHTTPTypes", "NIOHTTPTypesHTTP1", "NIOPosix", "NIOResumableUpload",
                    when: asyncHTTP)),
        .tests(
            "PostcardCommandTests", in: .program,
            uses: [
                "PostcardAsyncHTTP", "PostcardClient", "PostcardDoctor", "PostcardForm", "PostcardPictures",
                "PostcardQueue", "PostcardReceiver", "PostcardReception", "PostcardS3", "PostcardSamples",
                "PostcardServer", "PostcardStore", "PostcardTestSupport", "postcard",
            ],
            products: products("Crypto", "HTTPTypes", "Logging")
                + products("Hummingbird", "NIOCore", "ServiceLifecycle", when: server)
                + products("Tracing", when: tracing)),
        // What the client's tests do without: the program, and with it all other modules.
        .tests(
            "PostcardEndToEndTests", in: .program,
            uses: [
                "PostcardAsyncHTTP", "PostcardClient", "PostcardForm", "PostcardSendingSupport", "PostcardTestSupport",
                "postcard",
            ], products: products("Crypto", "HTTPTypes") + products("AsyncHTTPClient", "NIOSSL", when: asyncHTTP)),
    ],
    swiftLanguageModes: [.v6]
)
