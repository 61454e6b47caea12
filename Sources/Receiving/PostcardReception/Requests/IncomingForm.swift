import HTTPTypes
import NIOCore
import PostcardForm
import PostcardFoundation
import PostcardStore
import PostcardWire

/// A form that is being received. Files are passed to the store, and text fields are collected.
///
/// To save memory, a form is a class, and only its calls of the store are asynchronous: an asynchronous function keeps
/// copies of its values while a sender stalls.
final class IncomingForm {
    private enum Part {
        case none
        case field(PartHeader, value: [UInt8])
        /// A file whose type is not known yet.
        case beginning(PartHeader, ByteBuffer)
        case file
    }

    /// A call of the store that is needed before parsing continues.
    private enum Step {
        case beginFile(IncomingFile)
        case write(ByteBuffer)
        case endFile
        case wholeFile(IncomingFile)
    }

    private var parser: CheckedFormParser
    /// Turns a body with a single file into a form; `nil` if the body already is a form.
    private let frame: FramedBody?
    private var part = Part.none
    private var partIndex = 0
    private var contentOffset: Int64 = 0
    private var recordBytes = 0
    /// The number of bytes that the parts keep in memory until they become a record.
    private var heldBytes = 0
    /// The number of bytes of memory that the form has reserved.
    private var roomBytes = 0
    private let shares: ShareAccount
    /// The reserved memory for the parts; `nil` before the first part.
    private(set) var text: ShareAccount.Hold?
    private let maximumRecordBytes: Int
    private let maximumBodyBytes: Int64
    private let connection: (any RequestConnection)?
    private let observer: (any FormObserver)?
    private(set) var fields: [UploadRecord.Field] = []
    /// The charsets of parts that declare one, by the index of the field. A charset is `nil` if its name is unknown.
    private var charsets: [Int: Charset?] = [:]
    /// The charset that the form declares for all other texts; `nil` if its name is unknown.
    private var charset: Charset?
    /// Whether the form has declared a charset. The first field `_charset_` decides.
    private var hasCharset = false
    /// All fields and files, in the order of the form.
    private(set) var parts: [UploadRecord.Part] = []
    private(set) var fileCount = 0
    private let typePolicy: ContentTypePolicy
    /// Computes the digest of the body; `nil` if there is no digest to compare or to send.
    private var digestCheck: DigestCheck?

    /// `frame` turns a body with a single file into a form; `nil` if the body already is a form. `digestCheck` is `nil`
    /// if there is no digest to compare or to send. `shares` limits the memory for the parts, in total and for the
    /// client of the connection. `typePolicy` is for files whose first bytes contradict their type.
    init(
        parser: CheckedFormParser, frame: FramedBody?, digestCheck: DigestCheck?, maximumRecordBytes: Int,
        maximumBodyBytes: Int64,
        shares: ShareAccount, connection: (any RequestConnection)?, observer: (any FormObserver)?,
        typePolicy: ContentTypePolicy
    ) {
        self.typePolicy = typePolicy
        self.shares = shares
        self.connection = connection
        self.observer = observer
        self.parser = parser
        self.frame = frame
        self.digestCheck = digestCheck
        self.maximumRecordBytes = maximumRecordBytes
        self.maximumBodyBytes = maximumBodyBytes
    }

    /// Receives a body to its end. Throws `FormProblem` or ``UploadProblem`` if the form is refused, and the errors of
    /// the body and the upload.
    func receive(
        _ beginning: ByteBuffer?, _ rest: inout IncomingChunks, into upload: some PendingUpload
    ) async throws {
        var place = frame == nil ? Place.body : .beginning
        var next = frame?.beginning ?? beginning
        while true {
            // The chunk is released before the next bytes are awaited, so that they can use its memory.
            do {
                guard let chunk = next.take() else { break }
                if place == .body { digestCheck?.add(chunk) }
                var position = 0
                while let step = try nextStep(in: chunk, at: &position) {
                    switch step {
                    case .beginFile(let file), .wholeFile(let file):
                        try await upload.beginFile(file.header)
                        if file.beginning.readableBytes > 0 { try await upload.write(file.beginning) }
                        if case .wholeFile = step { try await upload.endFile() }
                    case .write(let bytes): try await upload.write(bytes)
                    case .endFile: try await upload.endFile()
                    }
                }
            } catch let problem as FormProblem {
                try await checkDigest(before: problem, &rest)
                throw problem
            }
            switch place {
            case .beginning:
                next = beginning
                place = .body
            case .body: next = try await rest.next(isolation: #isolation)
            case .end: next = nil
            }
            guard let frame, next == nil, place == .body else { continue }
            next = frame.end
            place = .end
        }
        try digestCheck?.check()
        try parser.finish()
        try decodeTexts()
    }

    /// The source of parsed bytes: the body, or the bytes that ``frame`` adds before or after a body that is not a
    /// form.
    private enum Place {
        case beginning, body, end
    }

    /// Compares the whole body with its digests before a malformed form is refused, because bytes may have changed in
    /// transit. A form that exceeds a limit or breaks a rule is refused without this comparison.
    private func checkDigest(before problem: FormProblem, _ rest: inout IncomingChunks) async throws {
        guard digestCheck?.isComparing == true, problem.code.status == 400, bodyBytes <= maximumBodyBytes
        else { return }
        do {
            while let chunk = try await rest.next(isolation: #isolation) {
                digestCheck?.add(chunk)
                // A body that is too large is refused whatever its digest is.
                guard bodyBytes <= maximumBodyBytes else { return }
            }
        } catch is RequestInterruption {
            return
        }
        try digestCheck?.check()
    }

    /// The digest of the whole body, if the request asks for one.
    var digest: BodyDigest? { digestCheck?.isWanted == true ? digestCheck?.digest : nil }

    /// Parses the chunk up to the next step. Returns `nil` at the end of the chunk.
    @inline(never)
    private func nextStep(in chunk: ByteBuffer, at position: inout Int) throws -> Step? {
        while let event = try parser.nextEvent(in: chunk.readableBytesSpan, at: &position) {
            if let step = try step(for: event, in: chunk) { return step }
        }
        return nil
    }

    private func step(for event: FormEvent, in chunk: ByteBuffer) throws -> Step? {
        switch event {
        case .partBegan(let header):
            try begin(header)
            return nil
        case .bytes(let bytes):
            observer?.partRead(bytes.count)
            return try read(bytes, of: chunk)
        case .partEnded:
            defer { part = .none }
            switch part {
            case .none: return nil
            case .field(let header, let value):
                observer?.fieldEnded(text: value)
                try add(value, of: header)
                return nil
            case .beginning(let header, let bytes): return .wholeFile(try file(header, beginningWith: bytes))
            case .file: return .endFile
            }
        }
    }

    private func begin(_ header: PartHeader) throws {
        partIndex = header.index
        contentOffset = parser.offset
        observer?.partBegan(header, at: contentOffset)
        try keep(header.filename == nil ? Self.fieldBytes : Self.fileBytes)
        try hold(header.name.utf8.count + (header.filename?.utf8.count ?? 0))
        guard header.filename != nil else {
            part = .field(header, value: [])
            return
        }
        try hold((header.contentType ?? MediaType.octetStream.value).utf8.count)
        parts.append(.file(fileCount))
        fileCount += 1
        part = .beginning(header, ByteBuffer())
    }

    /// Makes the description of a file from its header and its first bytes.
    private func file(
        _ header: PartHeader, beginningWith bytes: ByteBuffer
    ) throws(UploadProblem) -> IncomingFile {
        let file = IncomingFile(header, beginning: bytes)
        try hold(file.header.sentFilename?.utf8.count ?? 0)
        if let damage = file.damage {
            observer?.damageFound(damage, inFileAt: contentOffset, partIndex: partIndex)
        }
        guard let detected = file.header.detectedType else { return file }
        switch typePolicy {
        case .recordBoth: return file
        case .correct: return file.corrected
        case .refuse:
            throw .contradictedType(
                file.header.contentType, detected: detected, partIndex: partIndex,
                offset: parser.offset)
        }
    }

    private func read(_ bytes: FormBytes, of chunk: ByteBuffer) throws -> Step? {
        switch part {
        case .none: return nil
        case .field(let header, var value):
            try hold(bytes.count)
            // `part` is emptied first, because an array with two owners is copied when it grows.
            part = .none
            // The capacity grows by a quarter: an array that doubles its capacity may be half empty.
            if value.capacity < value.count + bytes.count {
                value.reserveCapacity(max(value.count + bytes.count, value.count / 4 * 5))
            }
            value.append(contentsOf: parser.piece(bytes, of: chunk).readableBytesView)
            part = .field(header, value: value)
            return nil
        case .beginning(let header, var first):
            part = .none
            let piece = parser.piece(bytes, of: chunk)
            if first.readableBytes == 0 { first = piece } else { first.writeImmutableBuffer(piece) }
            guard IncomingFile.canJudge(first) else {
                part = .beginning(header, first.kept)
                return nil
            }
            part = .file
            return .beginFile(try file(header, beginningWith: first))
        case .file: return .write(parser.piece(bytes, of: chunk))
        }
    }

    /// Adds a text field. A text that may not be in UTF-8 is decoded at the end of the form.
    private func add(_ value: [UInt8], of header: PartHeader) throws {
        if let label = header.charset {
            try keep(Self.charsetBytes)
            charsets[fields.count] = .some(Charset(label))
        }
        if !hasCharset, header.name == "_charset_", !value.isEmpty {
            hasCharset = true
            charset = Charset(ofForm: value)
        }
        parts.append(.field(fields.count))
        if let text = String(validating: value, as: UTF8.self) {
            fields.append(UploadRecord.Field(name: header.name, value: text))
        } else {
            fields.append(UploadRecord.Field(name: header.name, value: "", bytes: Data(value)))
        }
    }

    /// Decodes texts that are not in UTF-8 after the whole form was read, because the charset field may be last.
    private func decodeTexts() throws {
        var decoder = CharsetDecoder()
        for (index, field) in fields.enumerated() {
            let charset = charsets[index] ?? charset
            guard field.bytes != nil || charset?.hidesInASCII == true else { continue }
            let bytes = field.content
            // The text is kept in addition to its bytes, and may be three times as long.
            try keep(3 * bytes.count)
            let text =
                decoder.text(of: bytes, in: charset, repairing: true) ?? String(decoding: bytes, as: UTF8.self)
            let isSame = text.utf8.elementsEqual(bytes)
            fields[index] = UploadRecord.Field(name: field.name, value: text, bytes: isSame ? nil : bytes)
        }
    }

    /// Counts bytes of the form's texts and names.
    private func hold(_ count: Int) throws(UploadProblem) {
        guard recordBytes + count <= maximumRecordBytes else {
            throw .recordTooLarge(maximum: maximumRecordBytes, partIndex: partIndex)
        }
        recordBytes += count
        try keep(count)
    }

    /// Counts bytes that stay in memory until the form is a record and its response is made.
    private func keep(_ count: Int) throws(UploadProblem) {
        heldBytes += count
        guard heldBytes > roomBytes else { return }
        let room = max(heldBytes - roomBytes, Self.leastRoomBytes)
        if let text { try text.grow(by: room) } else { text = try shares.take(room, of: .textBytes, on: connection) }
        roomBytes += room
    }

    /// The minimum number of bytes to reserve at once, because a form has many short names and values.
    private static let leastRoomBytes = 256
    /// The memory for a field in addition to its texts, in bytes. A file needs more, for its digest and its address.
    private static let fieldBytes = 128
    private static let fileBytes = 640
    /// The memory for the charset of a part, in bytes.
    private static let charsetBytes = 64

    /// The number of bytes of the body that were read.
    var bodyBytes: Int64 { max(parser.offset - (frame?.byteCount ?? 0), digestCheck?.byteCount ?? 0) }

    /// Turns an error of the form or its body into the problem that the client receives. Keeps any other error.
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

/// A file whose first bytes have arrived.
struct IncomingFile {
    private(set) var header: UploadRecord.FileHeader
    let beginning: ByteBuffer
    /// The damage that the first bytes show.
    let damage: FileDamage?

    /// Whether the bytes are enough to recognize the file's type.
    static func canJudge(_ beginning: ByteBuffer) -> Bool {
        guard beginning.readableBytes < DamagedStart.bytesCount else { return true }
        return beginning.readableBytes >= MediaType.firstBytesCount
            && MediaType.forFirstBytes(beginning.readableBytesView.prefix(MediaType.firstBytesCount)) != nil
    }

    init(_ part: PartHeader, beginning: ByteBuffer) {
        header = UploadRecord.FileHeader(
            name: part.name, filename: part.filename ?? "", sentFilename: part.sentFilename,
            contentType: part.contentType ?? MediaType.octetStream.value)
        self.beginning = beginning
        let first = beginning.readableBytesView.prefix(MediaType.firstBytesCount)
        if let found = MediaType.forFirstBytes(first) {
            damage = nil
            if let declared = try? MediaType(header.contentType), declared.isContradicted(by: found) {
                header.detectedType = found.value
            }
        } else {
            var start = DamagedStart(contentType: part.contentType, filename: part.filename)
            beginning.withUnsafeReadableBytes { start.read($0) }
            damage = start.damage.flatMap { $0.isProven ? $0 : nil }
            header.damage = damage?.code.rawValue
        }
    }

    /// The same file with the type that its bytes indicate.
    var corrected: IncomingFile {
        var file = self
        file.header.contentType = header.detectedType ?? header.contentType
        file.header.detectedType = nil
        return file
    }
}
