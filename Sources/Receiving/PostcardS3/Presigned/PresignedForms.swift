#if Server || CommandLine
import HTTPTypes
public import PostcardForm
import PostcardFoundation
import PostcardReception
public import PostcardStore

/// Signs forms with which clients send files directly to a store's bucket, and makes records of these files.
///
/// `router.addPresignedForms(of:)` adds routes that use this type. Use it in a route of your own to decide which
/// clients get a form, and under which conditions:
///
/// ```swift
/// let photos = try PresignedForms(of: store, options)
/// router.post("pets/{id}/photo") { request, context in
///     try await photos.form(filename: "photo.jpg", contentType: .jpeg)
/// }
/// ```
///
/// A file is first stored below `arriving/`, at a key that cannot be guessed. When it is reported, its content is
/// copied within the store to a key where clients cannot write. A create-only PUT then makes the record.
public struct PresignedForms: Sendable {
    private let store: S3UploadStore
    private let options: PresignedFormOptions
    /// The object store, at the address that clients use.
    private let signing: ObjectStore
    private let screening: Screening?

    /// Makes forms for the bucket of a store.
    ///
    /// - Parameters:
    ///   - store: The store for the records of the files.
    ///   - options: The rules for files, and how long a form can be used.
    /// - Throws: ``S3Error`` if the endpoint or the key prefix in the options is invalid.
    public init(of store: S3UploadStore, _ options: PresignedFormOptions = PresignedFormOptions()) throws {
        self.store = store
        self.options = options
        screening = options.screen.map { screen in
            var limits = ShareLimits(clientShare: 1)
            limits[.screenings] = options.maximumConcurrentScreenings
            return Screening(timeLimit: options.screeningTimeout, ShareAccount(limits), screen: screen)
        }
        // The key prefix must follow the same rules as the bucket's prefix.
        if !options.keyPrefix.isEmpty { _ = try S3Bucket("s3://bucket/\(options.keyPrefix)") }
        guard let endpoint = options.endpoint else {
            signing = store.objects
            return
        }
        var bucket = store.objects.bucket
        bucket.endpoint = endpoint
        signing = try ObjectStore(bucket, logger: store.logger)
    }

    var bucketName: String { store.objects.bucket.name }

    // MARK: - Signing

    /// Signs a form for one file.
    ///
    /// - Parameters:
    ///   - filename: The client's name for the file. Defaults to an empty text.
    ///   - contentType: The media type of the file. Defaults to `nil`: any type, if all types are accepted.
    ///   - fields: The record's text fields: with the filename, at most 1,400 bytes of JSON. Defaults to none.
    /// - Throws: `UploadProblem` if the type is not accepted or the fields are too long; `UploadStoreError` if there
    ///   are no credentials.
    public func form(
        filename: String = "", contentType: MediaType? = nil, fields: [UploadRecord.Field] = []
    ) async throws -> PresignedForm {
        let type = try acceptedType(contentType)
        let facts = FormFacts(
            filename: filename, fields: fields.map { FormRequest.Field(name: $0.name, value: $0.value) })
        let described = try JSONEncoder().encode(facts).base64EncodedString()
        guard described.utf8.count <= FormFacts.maximumBytes else { throw UploadProblem.fieldsTooLong }
        let bucket = store.objects.bucket
        let name = "\(ObjectName.arriving)\(folder)\(ObjectName.random(store.objects.surroundings))"
        let now = bucket.clock()
        let lifetime = min(max(options.lifetime.components.seconds, 1), PresignedFormOptions.maximumLifetime)
        let metadata = ("x-amz-meta-\(FormFacts.fieldName)", described)
        return try await storing {
            switch options.method {
            case .post:
                var policy = PostPolicy(
                    expires: now.addingTimeInterval(Double(lifetime)),
                    fields: [("key", bucket.prefix + name), ("success_action_status", "201"), metadata])
                if let type { policy.fields.append(("Content-Type", type)) }
                policy.contentLengths = 0...maximumBytes
                return try await signing.signedForm(policy, at: now)
            case .put:
                var headers = [metadata]
                if let type { headers.append(("content-type", type)) }
                return try await signing.signedPut(name, headers: headers, lifetime: Int(lifetime), at: now)
            }
        }
    }

    private var folder: String {
        options.keyPrefix.split(separator: "/").map { "\($0)/" }.joined()
    }

    private var maximumBytes: Int64 { min(max(options.maximumBytes, 0), PresignedFormOptions.maximumObjectBytes) }

    /// The media type with which the file must be sent; `nil` for any type.
    private func acceptedType(_ type: MediaType?) throws(UploadProblem) -> String? {
        if let type {
            guard options.contentTypes.contains(where: { $0.contains(type) }) else {
                throw .typeNotAccepted(type.value, options.contentTypes)
            }
            return type.value
        }
        if options.contentTypes.contains(.any) { return nil }
        // If only one type is accepted, the client need not name it.
        guard let only = options.contentTypes.first, options.contentTypes.count == 1, only.isExact else {
            throw .typeNotAccepted(nil, options.contentTypes)
        }
        return only.value
    }

    // MARK: - Records

    /// Makes a record of a file that was sent with one of these forms, or returns the file's existing record.
    ///
    /// - Parameters:
    ///   - key: The complete key of the object, as the store reported it.
    ///   - etag: The ETag of the reported content, with or without quotes. Defaults to `nil`: any content.
    ///   - size: The size of the reported content, in bytes. Defaults to `nil`: any size.
    /// - Throws: `UploadProblem` if there is no such file, its content differs, the form was already used for another
    ///   file, or the file is not accepted; `UploadStoreError` if the store fails.
    public func record(ofObject key: String, etag: String? = nil, size: Int64? = nil) async throws -> CommittedUpload {
        let start = store.objects.bucket.prefix + ObjectName.arriving + folder
        // Objects in subfolders belong to other forms, which may have other rules.
        guard key.hasPrefix(start), ObjectName.isRandom(key.dropFirst(start.count)) else {
            throw UploadProblem.foreignKey(key)
        }
        let report = Report(
            name: String(key.dropFirst(store.objects.bucket.prefix.count)),
            key: UploadKey(key, scope: "presigned-form"), etag: etag?.unquoted, size: size)
        if let known = try await known(report) { return known }
        do {
            return try await store.copies.withBlock { try await newRecord(of: report) }
        } catch let problem as UploadProblem where problem == .formUsed {
            throw problem
        } catch {
            // Another receiver got the same report, and has already removed the object.
            if let known = try await known(report) { return known }
            throw error
        }
    }

    private struct Report {
        let name: String
        /// The key of the record to make.
        let key: UploadKey
        /// The ETag of the reported content, without quotes.
        let etag: String?
        let size: Int64?
    }

    /// Returns the record of a file that was already reported. Throws `UploadProblem` if the report is about another
    /// file that was sent with the same form.
    private func known(_ report: Report) async throws -> CommittedUpload? {
        guard case .taken(let entry) = try await storing({ try await store.keys.current(report.key.digest) }),
            let record = try await store.record(entry.id)
        else { return nil }
        // Without an ETag, the report is about the content that is stored now.
        let etag =
            if let etag = report.etag {
                etag
            } else {
                try await storing { try await store.objects.head(report.name)?.etag?.unquoted }
            }
        if let etag, let source = entry.sourceTag, etag != source { throw UploadProblem.formUsed }
        if let size = report.size, size != record.files.first?.size { throw UploadProblem.formUsed }
        return CommittedUpload(record, isRepetition: true)
    }

    private func newRecord(of report: Report) async throws -> CommittedUpload {
        let name = report.name
        guard let head = try await storing({ try await store.objects.head(name) }) else {
            throw UploadProblem.objectNotFound
        }
        try await check(head, report)
        let facts = head.metadata[FormFacts.fieldName].flatMap { Data(base64Encoded: $0) }
            .flatMap { try? JSONDecoder().decode(FormFacts.self, from: $0) }
        let fields = facts?.fields.map { UploadRecord.Field(name: $0.name, value: $0.value) } ?? []
        let upload = try await store.beginUpload(under: report.key, announcedBytes: head.size)
        // Another report of the same file was handled first.
        guard upload.isKept else {
            guard let known = try await known(report) else { throw UploadStoreError.deletedMeanwhile }
            return known
        }
        do {
            try await upload.copyFile(from: name, head, name: "file", filename: facts?.filename ?? "")
            if let reason = try await refusal(of: try await upload.finishedFiles()) {
                try await storing { try await remove(name, head) }
                throw UploadProblem.fileRefused(reason)
            }
            let committed = try await upload.commit(
                fields: fields, parts: fields.indices.map(UploadRecord.Part.field) + [.file(0)])
            // If the removal fails, the sweep removes the object later.
            try? await remove(name, head)
            return committed
        } catch let error as UploadStoreError {
            await upload.discard()
            if error.code == .keyReused { throw UploadProblem.formUsed }
            guard let cause = error.underlyingError as? S3Error else { throw error }
            if cause.status == 412 { throw UploadProblem.objectChanged }
            if cause.storeCode == "NoSuchKey" { throw UploadProblem.objectNotFound }
            throw error
        } catch {
            await upload.discard()
            throw error
        }
    }

    /// Screens a file. Returns the reason for a refusal; `nil` if the file is accepted.
    private func refusal(of files: [FinishedFile]) async throws(UploadProblem) -> String? {
        do throws(UploadProblem) {
            return try await screening?.refusal(of: files, from: nil, logger: store.logger)?.reason
        } catch {
            var problem = error
            problem.advice = "Report the file again in a moment. If it is not screened then, see the receiver's log."
            throw problem
        }
    }

    /// Compares an object with its report and with the rules for files. An object that is not accepted is removed.
    private func check(_ head: ObjectHead, _ report: Report) async throws {
        if let etag = report.etag, etag != head.etag?.unquoted { throw UploadProblem.objectChanged }
        if let size = report.size, size != head.size { throw UploadProblem.objectChanged }
        let type = head.contentType.flatMap { try? MediaType($0) } ?? .octetStream
        let problem: UploadProblem? =
            if head.size > maximumBytes {
                .objectTooLarge(head.size, maximum: maximumBytes)
            } else if !options.contentTypes.contains(where: { $0.contains(type) }) {
                .typeNotAccepted(type.value, options.contentTypes)
            } else {
                nil
            }
        guard let problem else { return }
        try await storing { try await remove(report.name, head) }
        throw problem
    }

    /// Removes an object, unless its content has changed: another report may concern the new content.
    private func remove(_ name: String, _ head: ObjectHead) async throws {
        guard try await store.objects.head(name)?.etag == head.etag else { return }
        try await store.objects.delete(name)
    }
}

extension UploadProblem {
    fileprivate static let fieldsTooLong = UploadProblem(
        status: .contentTooLarge, code: "presigned-fields-too-long",
        message: "The filename and the fields have more bytes than an object can keep with a file.",
        advice: "Send long texts in a form to the upload routes.")

    fileprivate static func typeNotAccepted(_ type: String?, _ accepted: [MediaRange]) -> UploadProblem {
        UploadProblem(
            status: .unsupportedMediaType, code: "file-type-not-accepted",
            message: type.map { "Files of type \($0) are not accepted." }
                ?? "The request does not name the file's type.",
            advice: "Send one of these in contentType: \(accepted.map(\.value).joined(separator: ", ")).")
    }

    fileprivate static func foreignKey(_ key: String) -> UploadProblem {
        UploadProblem(
            status: .badRequest, code: "key-of-no-form", message: "\(key.debugDescription) is not the key of a form.",
            advice: "Send the key that the store returned.")
    }

    fileprivate static let objectNotFound = UploadProblem(
        status: .notFound, code: "object-not-found", message: "There is no file with this key.",
        advice: "Send the file to the bucket first, and then report it.")

    fileprivate static let objectChanged = UploadProblem(
        status: .conflict, code: "object-changed",
        message: "The file is not the one that was reported: its ETag or its size is another.",
        advice: "Report the ETag and the size that the store returned last.")

    fileprivate static func fileRefused(_ reason: String) -> UploadProblem {
        UploadProblem(
            status: 422, code: "file-refused", message: "The file is refused: \(reason)",
            advice: "Send another file, with a new form.")
    }

    fileprivate static let formUsed = UploadProblem(
        status: .conflict, code: "object-changed",
        message: "The file is not the one that was stored with this form: its ETag or its size is another.",
        advice: "Get a new form for each file, and send the file with it.")

    fileprivate static func objectTooLarge(_ size: Int64, maximum: Int64) -> UploadProblem {
        var problem = UploadProblem(
            status: .contentTooLarge, code: "file-too-large",
            message: "The file has \(size) bytes, and \(maximum) are allowed. It was removed.",
            advice: "Send a smaller file, with a new form.")
        problem.limit = UploadProblem.Limit(name: "maximumFileBytes", value: maximum)
        return problem
    }
}
#endif
