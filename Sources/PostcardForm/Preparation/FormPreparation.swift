#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Changes parts of a form before it is sent, such as photos that must fit the server's limit.
///
/// Set it as ``FormPart/preparation``. Clients and queues prepare a form before they lay it out. `PostcardPictures` has
/// the preparation for pictures, `PictureFitting`.
///
/// All parts of a form whose preparations are equal are prepared in one call, so that they can share the bytes that the
/// form may have.
public protocol FormPreparation: Sendable, Hashable {
    /// Whether the result depends on the server's limits. If a server refuses the form and reports a smaller limit than
    /// was known, the form is prepared and sent again.
    var followsServerLimit: Bool { get }

    /// Prepares parts.
    ///
    /// - Parameters:
    ///   - parts: The parts, in the order of the form.
    ///   - context: What is known of the rest of the form and of the server.
    /// - Returns: As many parts, in the same order.
    /// - Throws: An error that fails the upload, unchanged. `CancellationError` if the task is cancelled. If the form is
    ///   prepared again because the server has refused it, the upload fails with the refusal instead, and this error is
    ///   its underlying one.
    func prepare(_ parts: [FormPart], in context: FormPreparationContext) async throws -> [FormPart]
}

/// What a preparation needs to know of the rest of the form, and of the server.
public struct FormPreparationContext: Sendable {
    /// The number of bytes of the body without the contents of the parts to prepare: delimiters, headers and all other
    /// parts. `nil` if there is a stream of unknown length.
    ///
    /// The number includes 128 bytes for each part to prepare, because its filename and type may get longer.
    public let otherBytes: Int64?

    /// The maximum number of bytes that the contents of the parts to prepare may have together, by the server's limits
    /// on the body and on all files. `nil` if no such limit is known.
    public let maximumBytes: Int64?

    /// The limits of the server, as far as they are known.
    public let limits: FormSizeLimits

    /// The folder for new files. The folder is removed when the upload is over.
    public let folder: URL

    /// Makes a context, for tests of a preparation.
    ///
    /// - Parameters:
    ///   - otherBytes: The number of bytes of the rest of the body; `nil` if unknown.
    ///   - maximumBytes: The maximum number of bytes that the parts may have together; `nil` if no limit is known.
    ///   - limits: The limits of the server. Defaults to none.
    ///   - folder: Where new files go. The caller removes it.
    public init(otherBytes: Int64?, maximumBytes: Int64?, limits: FormSizeLimits = FormSizeLimits(), folder: URL) {
        self.otherBytes = otherBytes
        self.maximumBytes = maximumBytes
        self.limits = limits
        self.folder = folder
    }
}

/// How large a form and its files may be for a server, as far as a client knows.
public struct FormSizeLimits: Sendable, Hashable {
    /// The maximum size of the whole body, in bytes; `nil` if unknown.
    public var maximumBodyBytes: Int64?

    /// The maximum size of any file, in bytes; `nil` if unknown.
    public var maximumFileBytes: Int64?

    /// The maximum size of all files together, in bytes; `nil` if unknown.
    public var maximumBytesOfAllFiles: Int64?

    /// The maximum size of each file, in bytes, by the name of its field.
    public var maximumBytesByName: [String: Int64]

    /// Makes limits. By default none is known.
    public init(
        maximumBodyBytes: Int64? = nil, maximumFileBytes: Int64? = nil, maximumBytesOfAllFiles: Int64? = nil,
        maximumBytesByName: [String: Int64] = [:]
    ) {
        self.maximumBodyBytes = maximumBodyBytes
        self.maximumFileBytes = maximumFileBytes
        self.maximumBytesOfAllFiles = maximumBytesOfAllFiles
        self.maximumBytesByName = maximumBytesByName
    }

    /// The limits that rules set; none without rules.
    public init(_ rules: FormRules?) {
        self.init(
            maximumBytesOfAllFiles: rules?.maximumBytesOfAllFiles,
            maximumBytesByName: rules?.files.compactMapValues(\.maximumBytes) ?? [:])
    }

    /// The maximum size of a file, in bytes, by the name of its field; `nil` if no limit is known.
    public func maximumBytes(ofFileNamed name: String) -> Int64? {
        Self.smaller(maximumBytesByName[name], maximumFileBytes)
    }

    /// Both limits at once: the smaller of each.
    package func lowered(by other: FormSizeLimits) -> FormSizeLimits {
        FormSizeLimits(
            maximumBodyBytes: Self.smaller(maximumBodyBytes, other.maximumBodyBytes),
            maximumFileBytes: Self.smaller(maximumFileBytes, other.maximumFileBytes),
            maximumBytesOfAllFiles: Self.smaller(maximumBytesOfAllFiles, other.maximumBytesOfAllFiles),
            maximumBytesByName: maximumBytesByName.merging(other.maximumBytesByName) { min($0, $1) })
    }

    /// Only the limits that a form exceeds; `nil` if it exceeds none.
    package func exceeded(by layout: FormLayout) -> FormSizeLimits? {
        let files = layout.parts.filter { $0.filename != nil }
        func isExceeded(_ limit: Int64?, by bytes: Int64?) -> Bool { limit.map { $0 >= 0 && $0 < bytes ?? 0 } ?? false }
        var exceeded = FormSizeLimits()
        if isExceeded(maximumBodyBytes, by: layout.contentLength) { exceeded.maximumBodyBytes = maximumBodyBytes }
        if isExceeded(maximumFileBytes, by: files.compactMap(\.contentLength).max()) {
            exceeded.maximumFileBytes = maximumFileBytes
        }
        if isExceeded(maximumBytesOfAllFiles, by: files.reduce(0) { $0.addingUpTo($1.contentLength ?? 0) }) {
            exceeded.maximumBytesOfAllFiles = maximumBytesOfAllFiles
        }
        exceeded.maximumBytesByName = maximumBytesByName.filter { name, limit in
            isExceeded(limit, by: files.filter { $0.name == name }.compactMap(\.contentLength).max())
        }
        return exceeded == FormSizeLimits() ? nil : exceeded
    }

    private static func smaller(_ one: Int64?, _ other: Int64?) -> Int64? { [one, other].compactMap(\.self).min() }
}

extension Int64 {
    /// Adds a number of bytes. More than can be counted is as many as can be counted.
    fileprivate func addingUpTo(_ other: Int64) -> Int64 {
        let (sum, isTooLarge) = addingReportingOverflow(other)
        return isTooLarge ? .max : sum
    }
}

// MARK: - Preparing a form

extension MultipartForm {
    /// Whether a part has to be prepared before the form can be laid out.
    public var needsPreparation: Bool { parts.contains { $0.preparation != nil } }

    /// Whether a part is prepared for the limits of the server.
    package var followsServerLimit: Bool { parts.contains { $0.preparation?.followsServerLimit ?? false } }

    /// Prepares the parts of the form, and uses the form with the new ones.
    ///
    /// Clients and queues do this themselves. Call it to lay out or to write a form that needs preparation:
    ///
    /// ```swift
    /// let body = try await form.withPreparedParts { try await $0.layout().data() }
    /// ```
    ///
    /// - Parameters:
    ///   - limits: The limits of the server, as far as they are known. Defaults to none.
    ///   - use: Uses the prepared form. Its new files are removed when this returns or throws.
    /// - Returns: What `use` returns.
    /// - Throws: ``FormError`` if a file cannot be read, or a folder for new files cannot be created; errors of the
    ///   preparations and of `use`.
    public func withPreparedParts<Result>(
        within limits: FormSizeLimits = FormSizeLimits(), _ use: (MultipartForm) async throws -> Result
    ) async throws -> Result {
        guard needsPreparation else { return try await use(self) }
        let folder = try PreparationFolder()
        defer { folder.remove() }
        return try await use(try await prepared(within: limits, in: folder.url))
    }

    /// The form with prepared parts.
    ///
    /// - Parameters:
    ///   - limits: The limits of the server, as far as they are known.
    ///   - folder: Where new files go. The caller removes it.
    package func prepared(within limits: FormSizeLimits, in folder: URL) async throws -> MultipartForm {
        var form = self
        for (preparation, indices) in preparations {
            try Task.checkCancellation()
            let context = try form.context(for: indices, within: limits, in: folder)
            let prepared = try await preparation.prepare(indices.map { form.parts[$0] }, in: context)
            guard prepared.count == indices.count else {
                throw FormError.preparation("\(indices.count) parts were prepared, and \(prepared.count) returned")
            }
            for (index, part) in zip(indices, prepared) {
                form.parts[index] = part
                form.parts[index].preparation = nil
            }
        }
        return form
    }

    /// The parts of each preparation. What follows the server's limit comes last, because it gets what the others
    /// leave.
    private var preparations: [(preparation: any FormPreparation, indices: [Int])] {
        var found: [(preparation: any FormPreparation, indices: [Int])] = []
        var places: [AnyHashable: Int] = [:]
        for (index, part) in parts.enumerated() {
            guard let preparation = part.preparation else { continue }
            let place = places[AnyHashable(preparation)] ?? found.count
            places[AnyHashable(preparation)] = place
            if place == found.count { found.append((preparation, [])) }
            found[place].indices.append(index)
        }
        return found.filter { !$0.preparation.followsServerLimit } + found.filter(\.preparation.followsServerLimit)
    }

    /// How many bytes a part's header may gain.
    private static let headerReserve: Int64 = 128

    private func context(
        for indices: [Int], within limits: FormSizeLimits, in folder: URL
    ) throws(FormError) -> FormPreparationContext {
        // The form with empty parts in place of those to prepare has exactly the other bytes.
        var rest = self
        let own = Set(indices)
        var (ownBytes, laterBytes): (Int64, Int64) = (0, 0)
        for (index, part) in parts.enumerated() where part.preparation != nil {
            let bytes = try part.content.byteCount(partIndex: index)
            if own.contains(index) {
                ownBytes = ownBytes.addingUpTo(bytes)
            } else {
                laterBytes = laterBytes.addingUpTo(bytes)
            }
            rest.parts[index].content = .bytes(Data())
            rest.parts[index].metadata = .asIs
            rest.parts[index].preparation = nil
        }
        let layout = try rest.layout()
        let reserve = Int64(parts.count { $0.preparation != nil }) * Self.headerReserve
        let others = layout.contentLength?.addingUpTo(reserve)
        let files = layout.parts.filter { $0.filename != nil }.map(\.contentLength)
        let otherFiles = files.contains(nil) ? nil : files.reduce(Int64(0)) { $0.addingUpTo($1 ?? 0) }
        let rooms = [(limits.maximumBodyBytes, others), (limits.maximumBytesOfAllFiles, otherFiles)].compactMap {
            limit, used -> Int64? in
            guard let limit, let used else { return nil }
            let room = max(max(limit, 0) - used, 0)
            let all = ownBytes.addingUpTo(laterBytes)
            if all <= room { return room - laterBytes }
            // Parts that are prepared later get their share, by their size.
            guard laterBytes > 0 else { return room }
            let share = (Double(room) * (Double(ownBytes) / Double(all))).rounded(.down)
            return min(Int64(exactly: share) ?? room, room)
        }
        return FormPreparationContext(
            otherBytes: others?.addingUpTo(laterBytes), maximumBytes: rooms.min(), limits: limits, folder: folder)
    }
}

extension FormPart.Content {
    /// The number of bytes; 0 for a stream of unknown length.
    fileprivate func byteCount(partIndex: Int) throws(FormError) -> Int64 {
        switch self {
        case .text(let text): Int64(text.utf8.count)
        case .bytes(let bytes): Int64(bytes.count)
        case .file(let url): try FileSource(url, metadata: .asIs, partIndex: partIndex).length
        case .stream(let stream): stream.length ?? 0
        }
    }
}

/// A folder for the files that preparations make. Only its owner can read it.
package struct PreparationFolder: Sendable {
    package let url: URL

    /// Creates it in ``FormPart/temporaryFolder``.
    package init() throws(FormError) {
        url = FormPart.temporaryFolder.appending(
            component: "prepared-\(UUID().uuidString)", directoryHint: .isDirectory)
        do {
            _ = try FormPart.makeFolder()
            try FileManager.default.createDirectory(
                at: url, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        } catch {
            throw .preparation("the folder \(url.path) cannot be created: \(error)", path: url.path, error)
        }
    }

    /// Removes it with its files.
    package func remove() {
        try? FileManager.default.removeItem(at: url)
    }
}
