import Hummingbird
import PostcardDoctor
import PostcardForm
import PostcardServer
import Synchronization

/// Records a request while it is received.
final class RequestRecorder: FormObserver {
    private struct State {
        var body = RecordedBody.Builder()
        var isComplete = false
        var parts: [RecordedPart] = []
        var partBytes = 0
        var partCount = 0
        /// Whether the latest part is in `parts`, as its last element.
        var isPartRecorded = false
        var warnings: [FormProblem] = []
        var warningCounts: [FormProblem.Code: Int] = [:]
        /// How far the form was read.
        var readTo: Int64 = 0
        /// The byte ranges of the contents of secret parts. The last one may not be complete.
        var secrets: [Range<Int64>] = []
        var isInSecret = false

        /// Whether an offset is or may be within a secret.
        func maybeSecret(at offset: Int64) -> Bool {
            offset > readTo || secrets.contains { $0.contains(offset) || $0.upperBound == offset }
        }
    }

    /// What was recorded.
    struct Notes {
        var body: RecordedBody
        var parts: [RecordedPart]
        let partCount: Int
        /// The first warnings of each kind.
        let warnings: [FormProblem]
        /// How many warnings of each kind there were.
        let warningCounts: [FormProblem.Code: Int]

        static let none = Notes(body: .none, parts: [], partCount: 0, warnings: [], warningCounts: [:])
    }

    private let options: InspectionOptions
    private let inspector: RequestInspector
    private let state = Mutex(State())

    /// The length of a message; longer texts are not recorded.
    private static let maximumTextBytes = 1 << 10
    /// The first one is shown in full, and the places of the next.
    private static let maximumWarningsOfAKind = FindingGroup.Places.maximum + 1

    /// - Parameter inspector: Keeps the request. All requests in progress take about as much memory together as those
    ///   that it has recorded.
    init(for inspector: RequestInspector) {
        options = inspector.options
        self.inspector = inspector
        inspector.recordingBegins()
    }

    deinit {
        inspector.recordingEnds()
    }

    func took(_ chunk: ByteBuffer) {
        let maximumEndBytes = inspector.maximumEndBytes
        state.withLock { $0.body.take(chunk, maximumEndBytes: maximumEndBytes) }
    }

    func bodyEnded() {
        state.withLock { $0.isComplete = true }
    }

    /// Whether more of the body could be recorded than was read.
    var hasRoom: Bool {
        let maximumEndBytes = inspector.maximumEndBytes
        return state.withLock { !$0.isComplete && $0.body.length < Int64(maximumEndBytes) }
    }

    /// - Parameter offset: The offset of the part's content.
    func partBegan(_ header: PartHeader, at offset: Int64) {
        state.withLock { state in
            state.partCount += 1
            state.readTo = offset
            let isSecret = Secrets.isSecret(header.name)
            if isSecret { state.secrets.append(offset..<offset) }
            state.isInSecret = isSecret
            state.isPartRecorded = state.parts.count < options.maximumParts && state.partBytes < options.maximumEndBytes
            for warning in header.warnings {
                let count = state.warningCounts[warning.code, default: 0]
                state.warningCounts[warning.code] = count + 1
                if count < Self.maximumWarningsOfAKind { state.warnings.append(warning) }
            }
            guard state.isPartRecorded else { return }
            let part = RecordedPart(header, isSecret: isSecret, contentOffset: offset)
            state.partBytes += part.bytes
            state.parts.append(part)
        }
    }

    func partRead(_ count: Int) {
        state.withLock { state in
            state.readTo += Int64(count)
            if state.isInSecret, let secret = state.secrets.popLast() {
                state.secrets.append(secret.lowerBound..<state.readTo)
            }
            if state.isPartRecorded { state.parts[state.parts.count - 1].size += Int64(count) }
        }
    }

    func fieldEnded(text: [UInt8]) {
        state.withLock { state in
            if Secrets.beginsWithCredentials(text) {
                state.secrets.append(state.readTo - Int64(text.count)..<state.readTo)
            }
            guard state.isPartRecorded, text.count <= Self.maximumTextBytes else { return }
            state.parts[state.parts.count - 1].keep(text)
            state.partBytes += text.count
        }
    }

    /// - Parameter keepsBody: Whether the body is recorded, or only its length.
    func notes(keepsBody: Bool) -> Notes {
        let maximumEndBytes = inspector.maximumEndBytes
        return state.withLock { state in
            var body = state.body.emptied(isComplete: state.isComplete)
            if keepsBody {
                body = state.body.body(isComplete: state.isComplete, maximumEndBytes: maximumEndBytes)
                body = body.hidingSecrets(lastBeginsInSecret: state.maybeSecret(at: body.lastOffset))
            }
            return Notes(
                body: body, parts: state.parts, partCount: state.partCount, warnings: state.warnings,
                warningCounts: state.warningCounts)
        }
    }
}
