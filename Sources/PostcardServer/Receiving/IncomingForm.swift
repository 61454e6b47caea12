import Hummingbird
import PostcardForm

/// A form as it comes in: files go on to the store, text fields are gathered.
///
/// It is an object, and only what it hands to the store is done in asynchronous functions: they keep their values, and
/// copies of them, for as long as a sender stalls, and a form's are large.
final class IncomingForm {
    /// The part that is being read.
    private enum Part {
        case none
        case field(name: String, value: [UInt8])
        case file
    }

    /// What is to be done with the upload.
    private enum Step {
        case beginFile(name: String, filename: String, contentType: String)
        case write(ByteBuffer)
        case endFile
    }

    private var parser: FormParser
    private var part = Part.none
    private var partIndex = 0
    private(set) var recordBytes = 0
    private let held: HeldBytes
    private let maximumRecordBytes: Int
    private var checker: FormRuleChecker?
    /// Notes what goes by, where somebody wants to see it.
    private let capture = RequestCapture.current
    private(set) var fields: [UploadRecord.Field] = []

    /// - Parameter held: What all forms hold; whoever made this one gives ``recordBytes`` back to it.
    init(parser: FormParser, rules: FormRules?, maximumRecordBytes: Int, held: HeldBytes) {
        self.held = held
        self.parser = parser
        checker = rules.map(FormRuleChecker.init)
        self.maximumRecordBytes = maximumRecordBytes
    }

    /// Reads a body to its end.
    ///
    /// - Parameters:
    ///   - beginning: The first bytes of the body.
    ///   - rest: The bytes behind them.
    /// - Throws: ``FormProblem`` or ``UploadProblem`` for what is wrong with the form, and whatever the body or the
    ///   upload throw.
    func receive(
        _ beginning: ByteBuffer?, _ rest: inout RequestBody.AsyncIterator, into upload: some PendingUpload
    ) async throws {
        var next = beginning
        while true {
            // Not kept while the next bytes are waited for, which then need no other memory.
            do {
                guard let chunk = next.take() else { break }
                var position = 0
                while let step = try nextStep(in: chunk, at: &position) {
                    switch step {
                    case .beginFile(let name, let filename, let contentType):
                        try await upload.beginFile(name: name, filename: filename, contentType: contentType)
                    case .write(let bytes): try await upload.write(bytes)
                    case .endFile: try await upload.endFile()
                    }
                }
            }
            next = try await rest.next(isolation: #isolation)
        }
        try finish()
    }

    /// Reads on up to the next step; `nil` where the chunk is used up.
    @inline(never)
    private func nextStep(in chunk: ByteBuffer, at position: inout Int) throws -> Step? {
        while let event = try parser.nextEvent(in: chunk.readableBytesSpan, at: &position) {
            try checker?.check(event, in: chunk.readableBytesSpan, readBy: parser)
            if let step = try step(for: event, in: chunk) { return step }
        }
        return nil
    }

    @inline(never)
    private func finish() throws {
        try parser.finish()
        try checker?.formEnded(at: parser.offset)
    }

    private func step(for event: FormEvent, in chunk: ByteBuffer) throws -> Step? {
        switch event {
        case .partBegan(let header): return try begin(header)
        case .bytes(let bytes):
            capture?.partTook(bytes.count)
            return try take(bytes, of: chunk)
        case .partEnded:
            defer { part = .none }
            switch part {
            case .none: return nil
            case .field(let name, let value):
                capture?.partEnded(value: value)
                fields.append(UploadRecord.Field(name: name, value: String(decoding: value, as: UTF8.self)))
                return nil
            case .file:
                capture?.partEnded()
                return .endFile
            }
        }
    }

    private func begin(_ header: PartHeader) throws -> Step? {
        partIndex = header.index
        capture?.partBegan(header, at: parser.offset)
        try hold(header.name.utf8.count + (header.filename?.utf8.count ?? 0))
        guard let filename = header.filename else {
            part = .field(name: header.name, value: [])
            return nil
        }
        part = .file
        let contentType = header.contentType ?? MediaType.octetStream.value
        try hold(contentType.utf8.count)
        return .beginFile(name: header.name, filename: filename, contentType: contentType)
    }

    private func take(_ bytes: FormBytes, of chunk: ByteBuffer) throws -> Step? {
        switch (part, bytes) {
        case (.none, _): return nil
        case (.field(let name, var value), _):
            try hold(bytes.count)
            // Emptied first, because an array that two hold is copied when it grows.
            part = .none
            switch bytes {
            case .chunk(let range):
                value.append(contentsOf: chunk.readableBytesView.dropFirst(range.lowerBound).prefix(range.count))
            case .held(let range): value.append(contentsOf: parser.heldBytes[range])
            }
            part = .field(name: name, value: value)
            return nil
        case (.file, .chunk(let range)):
            return chunk.getSlice(at: chunk.readerIndex + range.lowerBound, length: range.count).map(Step.write)
        case (.file, .held(let range)):
            return .write(ByteBuffer(bytes: parser.heldBytes[range]))
        }
    }

    /// Accounts for bytes that stay in memory until the record is written.
    private func hold(_ count: Int) throws(UploadProblem) {
        guard recordBytes + count <= maximumRecordBytes else {
            throw .recordTooLarge(maximum: maximumRecordBytes, partIndex: partIndex)
        }
        try held.take(count)
        recordBytes += count
    }

    /// The bytes of the body that were read.
    var bodyBytes: Int64 { parser.offset }

    /// What an error that ended the form is to its sender.
    func problem(for error: any Error) -> any Error {
        switch error {
        case let problem as FormProblem: UploadProblem(problem)
        case let interruption as RequestInterruption: interruption.problem(at: parser.offset) ?? error
        default: error
        }
    }
}

@available(*, unavailable)
extension IncomingForm: Sendable {}
