import HTTPTypes
import Hummingbird
import PostcardDoctor
import PostcardForm
import PostcardReception
import PostcardServer
import Synchronization

final class RequestRecorder: FormObserver {
    private struct State {
        var body = RecordedBody.Builder()
        var isComplete = false
        /// Whether reading the body has failed. The body is then incomplete, even if its end is reported later.
        var hasBrokenOff = false
        var parts: [RecordedPart] = []
        var partBytes = 0
        var partCount = 0
        /// Whether the latest part is the last element of `parts`: parts beyond the limits are not recorded.
        var isPartRecorded = false
        var warnings: [FormProblem] = []
        var warningCounts: [FormProblem.Code: Int] = [:]
        /// The offset in the body up to which the form was read.
        var readTo: Int64 = 0
        /// The byte ranges of the contents of secret parts. The last range grows while its part is read.
        var secrets: [Range<Int64>] = []
        var isInSecret = false
        /// The diagnosis of a refused request, and the recorded body.
        var examined: (diagnosis: Diagnosis, body: RecordedBody)?

        mutating func add(_ warning: FormProblem) {
            let count = warningCounts[warning.code, default: 0]
            warningCounts[warning.code] = count + 1
            if count < RequestRecorder.maximumWarningsOfAKind { warnings.append(warning) }
        }

        var warningGroups: [FindingGroup] {
            FindingGroup.groups(of: warnings.map { Finding($0) }, counts: warningCounts)
        }

        func maybeSecret(at offset: Int64) -> Bool {
            offset > readTo || secrets.contains { $0.contains(offset) || $0.upperBound == offset }
        }
    }

    struct Notes {
        var body: RecordedBody
        var parts: [RecordedPart]
        let partCount: Int
        /// The problems, one of each kind, with the bytes of the body around them.
        let problems: [RequestDescription.Problem]

        static let none = Notes(body: .none, parts: [], partCount: 0, problems: [])

        static func none(refusedFor refusal: UploadProblem) -> Notes {
            Notes(body: .none, parts: [], partCount: 0, problems: Diagnosis(of: refusal).problems)
        }
    }

    private let options: InspectionOptions
    private let inspector: RequestInspector
    private let reader: Reader
    private let headerFields: HTTPFields
    /// Whether the body may be recorded. The body of an append may begin in the middle of a secret.
    private let keepsBody: Bool
    private let state = Mutex(State())

    /// The maximum length of a recorded text, in bytes: enough for a short message.
    private static let maximumTextBytes = 1 << 10
    /// The maximum number of recorded warnings of one kind. Only the first warning is shown in full. Of the others,
    /// only the positions are shown.
    private static let maximumWarningsOfAKind = FindingGroup.Places.maximum + 1

    /// - Parameter inspector: The inspector that keeps the record, and limits the memory for all requests in progress.
    init(_ request: Request, for inspector: RequestInspector) {
        options = inspector.options
        self.inspector = inspector
        reader = Reader(request.body)
        headerFields = request.headers
        keepsBody = request.method != .patch
        inspector.recordingBegins()
    }

    deinit {
        let wholeBytes = state.withLock(\.body.wholeBytes)
        inspector.holds(-wholeBytes)
        inspector.recordingEnds()
    }

    /// Reads the next bytes of the body.
    func next() async throws -> ByteBuffer? {
        let next: ByteBuffer?
        do {
            next = try await reader.next()
        } catch {
            state.withLock { $0.hasBrokenOff = true }
            throw error
        }
        guard let chunk = next else {
            state.withLock { $0.isComplete = !$0.hasBrokenOff }
            return nil
        }
        let maximumEndBytes = inspector.maximumEndBytes
        state.withLock { state in
            let held = state.body.wholeBytes
            let maximumBytes = keepsBody ? inspector.maximumWholeBytes(holding: held) : 0
            state.body.take(chunk, maximumEndBytes: maximumEndBytes, maximumBytes: maximumBytes)
            inspector.holds(state.body.wholeBytes - held)
        }
        return chunk
    }

    /// Whether the client sends the body without waiting for `100 Continue`, and the body is short enough to be
    /// recorded.
    private var isShort: Bool {
        guard headerFields[.expect] == nil, let length = headerFields[.contentLength].flatMap({ Int($0) }) else {
            return false
        }
        return length <= options.maximumEndBytes
    }

    /// Reads the unread bytes of a refused body, as long as they would be recorded. Most refused bodies are short and
    /// have already arrived, and a complete body is easier to explain.
    private func readRest() async {
        // If the body ends with an error, the bytes received before it are recorded.
        while hasRoom, let chunk = try? await next() { _ = chunk }
    }

    /// Whether more bytes of the body could be recorded.
    private var hasRoom: Bool {
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
            for warning in header.warnings { state.add(warning) }
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

    func damageFound(_ damage: FileDamage, inFileAt offset: Int64, partIndex: Int) {
        state.withLock {
            $0.add(FormProblem(damage.code, at: offset + damage.offset, part: partIndex, damage.message))
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

    // MARK: - The end

    /// Examines the body of a refused request, once. Returns the refusal that the client receives: the cause that the
    /// examination found, or else the problem itself.
    func refusal(for problem: UploadProblem) async -> UploadProblem {
        guard state.withLock({ $0.examined == nil }) else { return problem }
        if isShort, problem.isOfTheForm { await readRest() }
        let recorded = state.withLock { $0 }
        // The lock is released during the examination, because a large body takes some time.
        let examined = examine(recorded, problem)
        state.withLock { state in
            state.examined = examined
            release(&state)
        }
        return examined.diagnosis.refusal
    }

    private func examine(_ state: State, _ problem: UploadProblem) -> (diagnosis: Diagnosis, body: RecordedBody) {
        guard keepsBody else { return (Diagnosis(of: problem), state.body.emptied(isComplete: state.isComplete)) }
        let body = body(of: state)
        let diagnosis = Diagnosis(
            of: problem, in: body, contentType: headerFields[.contentType], warnings: state.warningGroups)
        let kept = body.cut(
            toEnds: inspector.maximumEndBytes, around: diagnosis.offsets, reach: Diagnosis.reach)
        return (diagnosis, kept)
    }

    /// The body with its secrets masked.
    private func body(of state: State) -> RecordedBody {
        state.body.body(isComplete: state.isComplete, maximumEndBytes: inspector.maximumEndBytes)
            .hidingSecrets(state.maybeSecret)
    }

    /// Releases the recorded bytes of the body.
    private func release(_ state: inout State) {
        inspector.holds(-state.body.wholeBytes)
        state.body = state.body.withoutBytes
    }

    /// Ends the recording. If the request was refused, ``refusal(for:)`` must be called first. `keepsBody` says whether
    /// the body is recorded, or only its length.
    func finish(refusedFor refusal: UploadProblem? = nil, keepsBody: Bool) -> Notes {
        let recorded = state.withLock { state in
            let recorded = state
            release(&state)
            return recorded
        }
        var body = recorded.body.emptied(isComplete: recorded.isComplete)
        var problems: [RequestDescription.Problem] = []
        if let examined = recorded.examined, let refusal {
            body = examined.body
            problems = examined.diagnosis.adding(refusal).problems
        } else {
            if keepsBody, self.keepsBody {
                body = self.body(of: recorded).cut(toEnds: inspector.maximumEndBytes, around: [], reach: 0)
            }
            problems = recorded.warningGroups.map { RequestDescription.Problem($0) }
        }
        return Notes(body: body, parts: recorded.parts, partCount: recorded.partCount, problems: problems)
    }
}

extension UploadProblem {
    /// Whether the problem concerns the form, and not the client or its connection.
    fileprivate var isOfTheForm: Bool { [400, 404, 405, 415, 422].contains(status.code) }
}

extension RequestRecorder {
    /// The body of the request. All readers share one iterator, because the body can be read only once.
    ///
    /// Unchecked: a single task handles a request. It reads the body as a form, and then the remaining bytes.
    fileprivate final class Reader: @unchecked Sendable {
        private var iterator: RequestBody.AsyncIterator?
        private let body: RequestBody

        init(_ body: RequestBody) {
            self.body = body
        }

        @concurrent
        func next() async throws -> ByteBuffer? {
            var reading = iterator ?? body.makeAsyncIterator()
            defer { iterator = reading }
            return try await reading.next()
        }
    }
}

/// A request's body that passes its bytes to a recorder. The recorder can continue after the form's reader has stopped.
struct ObservedBody: AsyncSequence, Sendable {
    let recorder: RequestRecorder

    struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let recorder: RequestRecorder

        func next() async throws -> ByteBuffer? { try await recorder.next() }
    }

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(recorder: recorder)
    }
}
