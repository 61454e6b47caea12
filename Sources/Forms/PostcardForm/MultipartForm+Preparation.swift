package import PostcardFoundation

extension MultipartForm {
    /// Whether a part must be prepared before the form can be laid out.
    public var needsPreparation: Bool { hasPickedItems || parts.contains { $0.preparation != nil } }

    /// Whether a part is a picked item that has not been copied yet.
    package var hasPickedItems: Bool { parts.contains { if case .picked = $0.content { true } else { false } } }

    /// Whether the preparation of a part depends on the server's limits.
    package var followsServerLimit: Bool { parts.contains { $0.preparation?.followsServerLimit ?? false } }

    /// Prepares the parts of the form, and passes the prepared form to a closure.
    ///
    /// Clients and queues prepare forms themselves. Call this to lay out or write a form that needs preparation:
    ///
    /// ```swift
    /// let body = try await form.withPreparedParts { try await $0.layout().data() }
    /// ```
    ///
    /// - Parameters:
    ///   - limits: The known limits of the server. Defaults to none.
    ///   - use: Uses the prepared form. Its new files are removed when the closure returns or throws.
    /// - Returns: The result of `use`.
    /// - Throws: ``FormError`` if a file cannot be read or a folder for new files cannot be created; errors of the
    ///   preparations and of `use`.
    public func withPreparedParts<Result>(
        within limits: FormSizeLimits = FormSizeLimits(), _ use: (MultipartForm) async throws -> Result
    ) async throws -> Result {
        guard needsPreparation else { return try await use(self) }
        let folder = try await PreparationFolder.make()
        do {
            let result = try await use(try await prepared(within: limits, in: folder.url))
            await folder.remove()
            return result
        } catch {
            await folder.remove()
            throw error
        }
    }

    /// The form with parts that are prepared for the server's known limits. New files are made in `folder`, which the
    /// caller removes.
    @concurrent package func prepared(within limits: FormSizeLimits, in folder: URL) async throws -> MultipartForm {
        var form = self
        for (index, part) in parts.enumerated() {
            guard case .picked(let item) = part.content else { continue }
            try Task.checkCancellation()
            form.parts[index].take(try await item.copy(to: folder))
        }
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

    /// The preparations, each with the indices of its parts. Preparations that depend on the server's limit come last,
    /// because they divide the remaining bytes among themselves.
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

    /// The number of bytes to reserve for the growth of a part's header.
    private static let headerReserve: Int64 = 128

    private func context(
        for indices: [Int], within limits: FormSizeLimits, in folder: URL
    ) throws(FormError) -> FormPreparationContext {
        // A copy of the form in which the parts to prepare are empty gives the size of everything else.
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
            // The room is too small for all parts, so it is divided in proportion to their present sizes.
            guard laterBytes > 0 else { return room }
            let share = (Double(room) * (Double(ownBytes) / Double(all))).rounded(.down)
            return min(Int64(exactly: share) ?? room, room)
        }
        return FormPreparationContext(
            otherBytes: others?.addingUpTo(laterBytes), maximumBytes: rooms.min(), limits: limits, folder: folder)
    }
}

extension FormPart.Content {
    /// The number of bytes of the content; 0 for a stream of unknown length.
    fileprivate func byteCount(partIndex: Int) throws(FormError) -> Int64 {
        switch self {
        case .text(let text): Int64(text.utf8.count)
        case .bytes(let bytes): Int64(bytes.count)
        case .file(let url): try FileSource(url, metadata: .asIs, partIndex: partIndex).length
        case .stream(let stream): stream.length ?? 0
        case .picked: 0
        }
    }
}

extension FormSizeLimits {
    /// Makes the limits that form rules set. Without rules, there are no limits.
    public init(_ rules: FormRules?) {
        self.init(
            maximumBytesOfAllFiles: rules?.maximumBytesOfAllFiles,
            maximumBytesByName: rules?.files.compactMapValues(\.maximumBytes) ?? [:])
    }

    /// A copy with only the limits that the form exceeds; `nil` if the form exceeds none.
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
}

extension Int64 {
    /// The sum of two numbers, or the largest number if the sum is too large.
    func addingUpTo(_ other: Int64) -> Int64 {
        let (sum, isTooLarge) = addingReportingOverflow(other)
        return isTooLarge ? .max : sum
    }
}
