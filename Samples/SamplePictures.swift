public import Foundation

/// Three small pictures to try things with; `Samples/draw` draws them.
///
/// `hills.jpg` has more than two megapixels, `stamp.png` is transparent in places, and `제주 바다.jpg` is on its
/// side with an Exif orientation that says so.
public enum SamplePictures {
    /// The pictures are neither where the program was built nor next to it.
    public struct Missing: Error, Sendable, CustomStringConvertible {
        public let description = "The sample pictures lie neither beside the program nor where it was built."
    }

    /// The paths of the pictures, sorted by name.
    ///
    /// - Throws: ``Missing`` where the program was moved without them.
    public static func all() throws -> [URL] {
        // The accessor that the package manager makes for resources ends the program where they are missing.
        let beside = ["postcard_PostcardSamples.resources", "postcard_PostcardSamples.bundle"].map {
            Bundle.main.bundleURL.appending(path: $0)
        }
        // Where `make install` puts them; the program may have been called by a link to it.
        let program = Bundle.main.executableURL?.resolvingSymlinksInPath().deletingLastPathComponent()
        let installed = program.map { [$0.appending(path: "../share/postcard").standardized] } ?? []
        let sources = URL(filePath: #filePath).deletingLastPathComponent()
        for folder in beside + installed + [sources] {
            let pictures = try? FileManager.default.contentsOfDirectory(
                at: folder.appending(path: "Pictures"), includingPropertiesForKeys: nil)
            guard let pictures, !pictures.isEmpty else { continue }
            return pictures.sorted { $0.lastPathComponent < $1.lastPathComponent }
        }
        throw Missing()
    }
}
