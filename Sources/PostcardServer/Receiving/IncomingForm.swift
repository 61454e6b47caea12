import Hummingbird
import PostcardForm
import Synchronization

/// A form that is being received: files are passed to the store, text fields are collected.
struct IncomingForm {
    /// The part that is being read.
    private enum Part {
        case none
        case field(name: String, value: [UInt8])
        case file
    }

    private var parser: FormParser
    private var part = Part.none
    private var partIndex = 0
    private(set) var recordBytes = 0
    private let held: HeldBytes
    private let maximumRecordBytes: Int
    private var checker: FormRuleChecker?
    private let observer = FormObservation.current
    private(set) var fields: [UploadRecord.Field] = []

    /// - Parameter held: Counts the bytes of all forms in memory. The caller gives ``recordBytes`` back to it.
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
    ///   - rest: The other bytes.
    /// - Throws: ``FormProblem`` or ``UploadProblem`` if the form is refused, and the errors of the body and the upload.
    mutating func receive(
        _ beginning: ByteBuffer?, _ rest: inout RequestBody.AsyncIterator, into upload: some PendingUpload
    ) async throws {
        var next = beginning
        while let chunk = next {
            var position = 0
            while let event = try parser.nextEvent(in: chunk.readableBytesSpan, at: &position) {
                try checker?.check(event, in: chunk.readableBytesSpan, readBy: parser)
                try await take(event, of: chunk, into: upload)
            }
            next = try await rest.next(isolation: #isolation)
        }
        try parser.finish()
        try checker?.formEnded(at: parser.offset)
    }

    private mutating func take(
        _ event: FormEvent, of chunk: ByteBuffer, into upload: some PendingUpload
    ) async throws {
        switch event {
        case .partBegan(let header):
            partIndex = header.index
            observer?.partBegan(header, at: parser.offset)
            try hold(header.name.utf8.count + (header.filename?.utf8.count ?? 0))
            guard let filename = header.filename else {
                part = .field(name: header.name, value: [])
                return
            }
            part = .file
            let contentType = header.contentType ?? MediaType.octetStream.value
            try hold(contentType.utf8.count)
            try await upload.beginFile(name: header.name, filename: filename, contentType: contentType)
        case .bytes(let bytes):
            observer?.partRead(bytes.count)
            if case .field = part { try hold(bytes.count) }
            try await take(bytes, of: chunk, into: upload)
        case .partEnded:
            switch part {
            case .none: break
            case .field(let name, let value):
                observer?.partEnded(text: value)
                fields.append(UploadRecord.Field(name: name, value: String(decoding: value, as: UTF8.self)))
            case .file:
                observer?.partEnded(text: nil)
                try await upload.endFile()
            }
            part = .none
        }
    }

    private mutating func take(
        _ bytes: FormBytes, of chunk: ByteBuffer, into upload: some PendingUpload
    ) async throws {
        switch (part, bytes) {
        case (.none, _): break
        case (.field(let name, var value), let bytes):
            // Emptied first, because an array with two owners is copied when it grows.
            part = .none
            switch bytes {
            case .chunk(let range):
                value.append(contentsOf: chunk.readableBytesView.dropFirst(range.lowerBound).prefix(range.count))
            case .held(let range): value.append(contentsOf: parser.heldBytes[range])
            }
            part = .field(name: name, value: value)
        case (.file, .chunk(let range)):
            guard let slice = chunk.getSlice(at: chunk.readerIndex + range.lowerBound, length: range.count) else {
                return
            }
            try await upload.write(slice)
        case (.file, .held(let range)):
            try await upload.write(ByteBuffer(bytes: parser.heldBytes[range]))
        }
    }

    /// Counts bytes that stay in memory until the record is written.
    private mutating func hold(_ count: Int) throws(UploadProblem) {
        guard recordBytes + count <= maximumRecordBytes else {
            throw .recordTooLarge(maximum: maximumRecordBytes, partIndex: partIndex)
        }
        try held.take(count)
        recordBytes += count
    }

    /// How many bytes of the body were read.
    var bodyBytes: Int64 { parser.offset }

    /// The error that the client gets.
    func problem(for error: any Error) -> any Error {
        switch error {
        case let problem as FormProblem: UploadProblem(problem)
        case let interruption as RequestInterruption: interruption.problem(at: parser.offset) ?? error
        default: error
        }
    }
}

/// Counts the bytes of all forms that stay in memory until their records are written.
final class HeldBytes: Sendable {
    private let maximum: Int
    private let held = Atomic<Int>(0)

    init(maximum: Int) {
        self.maximum = maximum
    }

    /// - Throws: ``UploadProblem`` if all forms together would exceed the maximum. Nothing is counted then.
    func take(_ count: Int) throws(UploadProblem) {
        guard held.add(count, ordering: .relaxed).newValue <= maximum else {
            giveBack(count)
            throw .tooMuchHeld(maximum: maximum)
        }
    }

    func giveBack(_ count: Int) {
        held.subtract(count, ordering: .relaxed)
    }
}
