import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension BackgroundAccount {
    /// An upload, and who has it.
    struct Entry {
        var manifest: UploadManifest
        var phase: Phase
    }

    enum Phase {
        /// About to be handed to the session, unless it is cancelled first.
        case waiting(isCancelled: Bool)
        case carried(Carriage)
        /// No task has it, and the manifest knows no end.
        case lost
        /// The manifest says how it ended.
        case over
    }

    /// A task under way.
    struct Carriage {
        let task: URLSessionTask
        var bytesSent: Int64 = 0
        var received = Data()
        #if canImport(FoundationNetworking)
        /// Whether the session has asked for the body.
        var isBodyTaken = false
        #endif
        /// Why it was given up, where it was.
        var cause: Cause?

        enum Cause {
            case cancelled
            case responseTooLarge
            /// The body was asked for a second time: the server may have had all of it before it closed.
            case answerLost
        }
    }
}

extension URLSessionTask {
    /// The upload that a task carries, by what a relaunched app finds of it.
    var uploadID: UUID? {
        get { taskDescription.flatMap(UUID.init(uuidString:)) }
        set { taskDescription = newValue?.uuidString }
    }
}

extension BackgroundAccount.Entry {
    var upload: BackgroundUpload {
        BackgroundUpload(
            id: manifest.id, url: manifest.url, filenames: manifest.filenames, added: manifest.added,
            totalBytes: manifest.bodyLength, attempts: manifest.attempts, state: uploadState)
    }

    private var uploadState: BackgroundUpload.State {
        switch phase {
        case .waiting: return .waiting
        case .carried(let carriage): return .sending(bytesSent: carriage.bytesSent)
        case .lost, .over: break
        }
        switch manifest.state {
        case .ready: return .lost(mayHaveArrived: false)
        case .started: return .lost(mayHaveArrived: true)
        case .cancelled: return .cancelled
        case .done(let answer):
            return .done(UploadResponse(answer, attempts: manifest.attempts, bytesSent: manifest.bodyLength))
        case .failed(let code, let message, let answer):
            let response = answer.map { UploadResponse($0, attempts: manifest.attempts, bytesSent: 0) }
            var error = UploadError(UploadError.Code(rawValue: code), message, response: response)
            if error.code == .refused, let response { error.delivery = response.delivery(of: nil) }
            return .failed(error)
        }
    }
}
