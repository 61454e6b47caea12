public import Hummingbird
import PostcardFiles
public import PostcardForm
import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension Request {
    /// Reads the request's form and makes a value of it.
    ///
    /// ```swift
    /// struct Pet: Decodable {
    ///     var name: String
    ///     var pictures: [FormFile]
    /// }
    /// router.post("pets") { request, context in
    ///     let pet = try await request.decodeForm(Pet.self)
    ///     return "\(pet.name) has \(pet.pictures.count) pictures"
    /// }
    /// ```
    ///
    /// Files that do not fit into memory are written to a temporary folder, and are gone when the request has been
    /// answered, has failed, or its task was cancelled: move or copy what is to be kept. That is seen to by
    /// ``HummingbirdCore/HTTPServerBuilder/uploads(options:)``, which the application has to run on for this.
    ///
    /// - Parameters:
    ///   - type: What to make.
    ///   - options: How much is taken, and how much of it is held in memory.
    /// - Throws: ``UploadProblem`` where the form is broken, goes over a limit, or is not the value's: let it pass, and
    ///   it becomes the answer. ``UploadStoreError`` where a file cannot be written.
    public func decodeForm<Value: Decodable>(
        _ type: Value.Type, options: FormReadingOptions = FormReadingOptions()
    ) async throws -> Value {
        do {
            var collector = FormCollector(files: UploadConnection.current?.files, options: options)
            for try await part in try form(limits: options.limits, rules: options.rules) {
                try await collector.take(part)
            }
            return try options.decoder.decode(type, from: collector.form)
        } catch let error as FormProblem {
            throw UploadProblem(error)
        } catch let error as FormDecodingError {
            throw UploadProblem(error)
        }
    }
}

/// Gathers a form's parts, the smaller ones in memory.
private struct FormCollector {
    /// Where large files go; `nil` where nobody would remove them.
    let files: TemporaryFiles?
    let options: FormReadingOptions
    private(set) var form = ReceivedForm()
    private var textBytes = 0
    private var fileBytes = 0

    /// Large enough that the change of threads costs nothing.
    private static let batchBytes = 256 << 10

    init(files: TemporaryFiles?, options: FormReadingOptions) {
        self.files = files
        self.options = options
    }

    mutating func take(_ part: FormPartContent<FormBody>) async throws {
        let content = part.header.isFile ? try await file(part) : try await text(part)
        form.append(ReceivedForm.Part(header: part.header, content: content))
    }

    private mutating func text(_ part: FormPartContent<FormBody>) async throws -> ReceivedForm.Content {
        var text = Data()
        for try await piece in part {
            textBytes += piece.readableBytes
            guard textBytes <= options.maximumTextBytes else {
                throw UploadProblem.recordTooLarge(maximum: options.maximumTextBytes, partIndex: part.header.index)
            }
            text.append(contentsOf: piece.readableBytesView)
        }
        return .bytes(text)
    }

    private mutating func file(_ part: FormPartContent<FormBody>) async throws -> ReceivedForm.Content {
        var gathered = Data()
        var spool: (path: FilePath, file: DurableFile)?
        for try await piece in part {
            gathered.append(contentsOf: piece.readableBytesView)
            if spool == nil, fileBytes + gathered.count > options.maximumFileBytesInMemory {
                spool = try await open()
            }
            if let file = spool?.file, gathered.count >= Self.batchBytes {
                try await onFileThread { [gathered] in try file.write(gathered.bytes) }
                gathered = Data()
            }
        }
        guard let (path, file) = spool else {
            fileBytes += gathered.count
            return .bytes(gathered)
        }
        try await onFileThread { [gathered] in try file.write(gathered.bytes) }
        return .file(URL(filePath: path.string))
    }

    private func open() async throws -> (path: FilePath, file: DurableFile) {
        guard let files else {
            throw UploadStoreError(
                .unavailable,
                "A file of the form does not fit into memory, and nobody would remove it from the disk. "
                    + "Run the application with server: .uploads().")
        }
        return try await onFileThread { try files.make() }
    }
}

/// How a form is read that a handler takes whole.
public struct FormReadingOptions: Sendable {
    /// How much of everything is taken.
    public var limits = FormLimits()

    /// Which fields and files may come; whatever is well formed unless set.
    public var rules: FormRules?

    /// The bytes of all texts together, which are held in memory: 8 MiB unless set.
    public var maximumTextBytes = 8 << 20

    /// The bytes of files that are held in memory: 1 MiB for all files of the form unless set. A file that goes beyond
    /// is written to disk.
    public var maximumFileBytesInMemory = 1 << 20

    /// How the fields become a value.
    public var decoder = FormDecoder()

    /// The defaults.
    public init() {}
}
