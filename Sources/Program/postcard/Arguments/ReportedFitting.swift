import Foundation
import PostcardForm
import PostcardPictures
import Synchronization

/// Makes pictures fit, and says which of them lose their video.
struct ReportedFitting: FormPreparation {
    private let fitting: PictureFitting
    /// The files of which it was said. A form may be prepared several times.
    private static let reported = Mutex<Set<URL>>([])

    init(_ fitting: PictureFitting) {
        self.fitting = fitting
    }

    var followsServerLimit: Bool { fitting.followsServerLimit }

    func prepare(_ parts: [FormPart], in context: FormPreparationContext) async throws -> [FormPart] {
        let prepared = try await fitting.prepare(parts, in: context)
        for (part, new) in zip(parts, prepared) {
            guard case .file(let file) = part.content, case .file(let newFile) = new.content, file != newFile,
                let edits = try? ExaminedContent(file)?.edits(.withoutLocation), edits.hasVideo,
                Self.reported.withLock({ $0.insert(file).inserted })
            else { continue }
            Terminal.say(
                "postcard: \(part.filename ?? part.name) is sent as a still picture, without its video. To send it as it "
                    + "is, leave out --fit and --max-edge.")
        }
        return prepared
    }
}
