// Uploads in an app that is not written with async and SwiftUI: a bar of UIKit, and a publisher of Combine.

import Foundation
import PostcardClient

#if canImport(UIKit) && canImport(Combine) && !os(watchOS)
import Combine
import UIKit

// snippet.show
final class UploadViewController: UIViewController {
    private let bar = UIProgressView()
    private var upload: Task<Void, Never>?

    func send(_ form: MultipartForm, to url: URL) {
        let progress = Progress()
        bar.observedProgress = progress
        upload = Task {
            do {
                try await UploadClient().upload(form, to: url, reportingTo: progress)
            } catch {
                report(error)
            }
        }
    }

    func cancel() { upload?.cancel() }

    private func report(_ error: any Error) {
        print(error.localizedDescription)
    }
}

@MainActor func uploadPublisher(
    of form: MultipartForm, to url: URL, by client: UploadClient
) -> AnyPublisher<UploadEvent, any Error> {
    let subject = PassthroughSubject<UploadEvent, any Error>()
    let upload = Task {
        do {
            for try await event in client.events(of: form, to: url) { subject.send(event) }
            subject.send(completion: .finished)
        } catch {
            subject.send(completion: .failure(error))
        }
    }
    return subject.handleEvents(receiveCancel: { upload.cancel() }).eraseToAnyPublisher()
}
// snippet.hide
#else
// Without UIKit a completion handler waits in a terminal.
let arguments = CommandLine.arguments.dropFirst()
guard let url = arguments.first.flatMap({ URL(string: $0) }) else {
    print("Usage: UploadsInUIKit URL PHOTO...")
    exit(64)
}
var form = MultipartForm()
form.append(filesAt: arguments.dropFirst().map { URL(filePath: $0) }, named: "petImage")
let progress = Progress(totalUnitCount: 0)
try await UploadClient().upload(form, to: url, reportingTo: progress)
print(progress.fractionCompleted)
#endif
