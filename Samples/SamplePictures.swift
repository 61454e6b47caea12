public import Foundation

/// Three small pictures to try things with; `Samples/draw` draws them.
///
/// `hills.jpg` has more than two megapixels, `stamp.png` is transparent in places, and `제주 바다.jpg` lies on its
/// side with an Exif orientation that says so.
public enum SamplePictures {
    /// Where the pictures lie, in the order of their names.
    public static func all() throws -> [URL] {
        let folder = Bundle.module.url(forResource: "Pictures", withExtension: nil)
        return try folder.map { folder in
            try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
                .sorted { $0.lastPathComponent < $1.lastPathComponent }
        } ?? []
    }
}
