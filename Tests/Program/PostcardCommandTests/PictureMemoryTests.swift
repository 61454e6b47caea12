import Foundation
import PostcardPictures
import PostcardTestSupport
import Testing

@Suite(.timeLimit(.minutes(10)), .enabled(if: PictureFitter.isAvailable)) struct PictureMemoryTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// The most memory that the program has while it makes a picture fit, in MiB.
    private func peakMemory(fitting picture: [UInt8], _ options: String...) async throws -> Int {
        let file = try folder.file("photo.jpg", picture)
        let script = """
            import resource, subprocess, sys
            subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)
            """
        let ending = try await Program.run(
            "python3",
            ["-c", script, Program.url.path, "send", "http://127.0.0.1:1/", "--dry-run", "-F", "a=@\(file.path)"]
                + options)
        return try #require(Int(ending.text.trimmingCharacters(in: .newlines)), "\(ending.messages)")
    }

    @Test
    func `a photo of 48 megapixels needs at most 100 MB more than one of a few pixels`() async throws {
        let small = try await peakMemory(fitting: FlatJPEG.bytes(width: 64, height: 48), "--max-edge", "32")
        let large = try await peakMemory(fitting: FlatJPEG.bytes(width: 8064, height: 6048), "--fit", "1MB")
        #expect(large - small < 95, "\(large) MiB, and \(small) MiB for a few pixels")
    }
}
