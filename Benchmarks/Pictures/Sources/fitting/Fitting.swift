import PostcardForm
import PostcardPictures

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Makes pictures fit and reports what became of them, one JSON object a line, for compare.py.
///
///     fitting BYTES EDGE FOLDER FILE…
@main
struct Fitting {
    private struct Line: Encodable {
        var file: String
        var result: String?
        var bytes: Int64?
        var width: Int?
        var height: Int?
        var quality: Int?
        var isOriginal: Bool?
        var encodings: Int?
        var seconds: Double
        var code: String?
        var message: String?
    }

    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count > 4, let bytes = Int64(arguments[1]), let edge = Int(arguments[2]) else {
            print("usage: fitting BYTES EDGE FOLDER FILE…")
            return
        }
        let limit = PictureLimit(maximumBytes: bytes, maximumEdge: edge, acceptedTypes: [.jpeg])
        let folder = URL(filePath: arguments[3])
        let fitter = PictureFitter()
        for file in arguments[4...] {
            let start = ContinuousClock.now
            var line = Line(file: file, seconds: 0)
            do {
                let picture = try await fitter.fit(URL(filePath: file), to: limit, in: folder)
                if case .file(let url) = picture.content { line.result = url.path }
                (line.bytes, line.quality) = (picture.bytes, picture.quality)
                (line.width, line.height) = (picture.size?.width, picture.size?.height)
                (line.isOriginal, line.encodings) = (picture.isOriginal, picture.encodings)
            } catch let error as PictureFitError {
                (line.code, line.message) = (error.code.rawValue, error.description)
            }
            line.seconds = (ContinuousClock.now - start) / .seconds(1)
            print(String(decoding: try JSONEncoder().encode(line), as: UTF8.self))
        }
    }
}
