// swift-tools-version: 6.2

import PackageDescription

/// A program that uses a few products of Postcard, with the traits that they need and no others. Scripts/check-consumers
/// builds each of them; CONSUMER names the one to build.
struct Consumer {
    var traits: Set<Package.Dependency.Trait>
    var products: [String]
    var packages: [Package.Dependency] = []
    var dependencies: [Target.Dependency] = []
}

let consumers: [String: Consumer] = [
    "Form": Consumer(traits: [], products: ["PostcardDoctor", "PostcardForm"]),
    "Client": Consumer(traits: [], products: ["PostcardClient", "PostcardForm"]),
    "AsyncHTTP": Consumer(traits: ["AsyncHTTP"], products: ["PostcardAsyncHTTP", "PostcardClient", "PostcardForm"]),
    "Queue": Consumer(traits: ["Queue"], products: ["PostcardForm", "PostcardQueue"]),
    "S3": Consumer(traits: ["S3"], products: ["PostcardS3", "PostcardServer"]),
    "Server": Consumer(
        traits: ["Server"], products: ["PostcardForm", "PostcardServer"],
        packages: [.package(url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.28.1", traits: [])],
        dependencies: [.product(name: "Hummingbird", package: "hummingbird")]),
]

let name = Context.environment["CONSUMER"] ?? "Client"

guard let consumer = consumers[name] else {
    fatalError("CONSUMER is \(consumers.keys.sorted().joined(separator: ", "))")
}

let package = Package(
    name: "Consumer",
    platforms: [.macOS(.v15)],
    dependencies: [
        // The name, because the folder may have any.
        .package(name: "postcard", path: "../..", traits: consumer.traits)
    ] + consumer.packages,
    targets: [
        .executableTarget(
            name: "Consumer",
            dependencies: consumer.products.map { .product(name: $0, package: "postcard") } + consumer.dependencies,
            path: "Sources/\(name)")
    ]
)
