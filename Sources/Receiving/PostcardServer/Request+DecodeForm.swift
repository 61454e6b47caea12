public import Hummingbird
import PostcardFiles
public import PostcardForm
import PostcardFoundation
import PostcardReception
import PostcardStore
import SystemPackage

extension Request {
    /// Decodes the request's form.
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
    /// Files that exceed the limit for memory are written to a temporary directory, which is removed after the
    /// response, an error, or the cancellation of the task: move or copy the files that you keep. Such files need an
    /// application that runs on ``HummingbirdCore/HTTPServerBuilder/uploads(options:)``.
    ///
    /// - Parameters:
    ///   - type: The type to decode.
    ///   - options: The limits of the form, and the limits for its parts in memory.
    /// - Throws: `UploadProblem` if the form is malformed, exceeds a limit, or does not match the type. If the handler
    ///   does not catch this error, it becomes the response. `UploadStoreError` if a file cannot be written.
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

/// Collects the parts of a form. Small files are kept in memory.
private struct FormCollector {
    /// The folder for large files; `nil` if the server would not remove the folder.
    let files: TemporaryFiles?
    let options: FormReadingOptions
    private(set) var form = ReceivedForm()
    var textBytes = 0
    var fileBytes = 0

    /// The number of bytes that are written at once: enough to make up for the change of thread that each write needs.
    private static let batchBytes = 256 << 10

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
                "A file of the form does not fit into memory, and this server would not remove it from the disk.",
                advice: "Run the application with server: .uploads().")
        }
        return try await onFileThread { try files.make() }
    }
}

/// Options for decoding a form in a handler.
public struct FormReadingOptions: Sendable {
    /// The limits of a form and its parts.
    public var limits = FormLimits()

    /// The fields and files that a form may have. Defaults to `nil`: all fields and files are allowed.
    public var rules: FormRules?

    /// The maximum total size of all text fields, which are kept in memory, in bytes. Defaults to 8 MiB.
    public var maximumTextBytes = 8 << 20

    /// The maximum size of all files in memory, in bytes. Further files are written to disk. Defaults to 1 MiB.
    public var maximumFileBytesInMemory = 1 << 20

    /// Decodes the value from the fields.
    public var decoder = FormDecoder()

    /// Makes options with the default values.
    public init() {}
}
