import ArgumentParser
import Foundation
import PostcardCLibrary
import PostcardForm
import PostcardPictures

/// Writes a small JPEG of a picture to standard output. `serve` runs this command for each picture on its page, so that
/// decoding an untrusted picture cannot use up the receiver's memory or crash it.
struct Thumbnail: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Writes a small JPEG of a picture to standard output.", shouldDisplay: false)

    @Argument(help: "The picture.")
    var file: String

    /// The length of the longer edge, in pixels: that of a wide tile on a screen with two pixels per point.
    private static let edge = 640
    private static let maximumBytes: Int64 = 200_000

    func run() async throws {
        Self.limitResources()
        do {
            let picture = try Data(contentsOf: URL(filePath: file), options: .alwaysMapped)
            let limit = PictureLimit(maximumBytes: Self.maximumBytes, maximumEdge: Self.edge, acceptedTypes: [.jpeg])
            let small = try await PictureFitter().fit(picture, to: limit)
            if case .bytes(let bytes) = small.content { try Terminal.write(bytes) }
        } catch {
            // Nothing is printed, to keep unreadable pictures out of the receiver's log.
            throw ExitStatus.refused
        }
    }

    /// The maximum memory of the process, in bytes: enough for a HEIC of 24 megapixels.
    private static let maximumMemory = 384 << 20
    /// The maximum processor time in seconds, so that malicious pictures do not delay others. A HEIC of 24 megapixels
    /// takes about two.
    private static let maximumSeconds = 10

    private static func limitResources() {
        // Uploads have priority over thumbnails.
        _ = nice(10)
        for (resource, value) in [(RLIMIT_DATA, maximumMemory), (RLIMIT_CPU, maximumSeconds), (RLIMIT_CORE, 0)] {
            // At the soft limit, the process gets a signal. At the hard limit, it is killed.
            var limit = rlimit(rlim_cur: rlim_t(value), rlim_max: rlim_t(value + 1))
            #if canImport(Glibc)
            _ = setrlimit(__rlimit_resource_t(resource.rawValue), &limit)
            #else
            _ = setrlimit(resource, &limit)
            #endif
        }
    }
}
