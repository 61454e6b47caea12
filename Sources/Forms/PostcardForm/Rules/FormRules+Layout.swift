import PostcardFoundation

extension FormRules {
    /// The problems that a receiver with these rules would find in a form that is not sent yet.
    ///
    /// Parts are read as a receiver reads them. Offsets count in the body to send; after a stream of unknown length,
    /// they are 0. Files are checked by their first bytes and their size in the layout. Streams are checked by their
    /// headers and known lengths, not by their bytes.
    ///
    /// - Returns: All problems in the order of the parts, at most one for each part, and then the missing parts.
    /// - Throws: ``FormError`` if a text field's value is in a file that cannot be read.
    public func problems(in layout: FormLayout) throws(FormError) -> [FormProblem] {
        var check = RuleCheck(self)
        var problems: [FormProblem] = []
        for index in layout.parts.indices {
            if let problem = try check.problem(ofPart: index, in: layout) { problems.append(problem) }
        }
        return problems + check.missing(at: layout.contentLength ?? 0)
    }

    /// The problems that a receiver with these rules would find in a form that is not sent yet.
    ///
    /// - Throws: ``FormError`` if the form cannot be laid out, and as ``problems(in:)-(FormLayout)`` does.
    public func problems(in form: MultipartForm) throws(FormError) -> [FormProblem] {
        try problems(in: form.layout())
    }

    /// Checks a form against the rules before it is sent.
    ///
    /// - Throws: The first ``FormProblem``, or ``FormError`` as ``problems(in:)-(FormLayout)`` does.
    public func check(_ layout: FormLayout) throws {
        if let problem = try problems(in: layout).first { throw problem }
    }

    /// Checks a form against the rules before it is sent.
    ///
    /// - Throws: The first ``FormProblem``, or ``FormError`` if the form cannot be laid out.
    public func check(_ form: MultipartForm) throws {
        try check(form.layout())
    }
}

extension RuleCheck {
    /// The first problem of a part to send; `nil` if the part breaks no rule.
    fileprivate mutating func problem(ofPart index: Int, in layout: FormLayout) throws(FormError) -> FormProblem? {
        // A layout has two segments for each part: the bytes before the content, and the content.
        let framing = layout.segments[2 * index]
        let content = layout.segments[2 * index + 1]
        var found: FormProblem?
        do throws(FormProblem) {
            let header = try PartHeader(framing, index: index)
            try partBegan(header, contentOffset: content.offset ?? 0)
        } catch {
            found = error
        }
        if found == nil { found = try problem(in: content) }
        guard let found, content.offset == nil || framing.offset == nil else { return found }
        return FormProblem(
            found.code, at: framing.offset == nil ? 0 : found.offset, part: found.partIndex, found.message,
            advice: found.advice, limit: found.limit)
    }

    private mutating func problem(in content: FormLayout.Segment) throws(FormError) -> FormProblem? {
        do {
            switch content.source {
            case .framing:
                break
            case .memory(let data, _):
                try data.withUnsafeBytes { try bytes($0) }
            case .file(let source) where needsText:
                try text(of: source)
            case .file(let source):
                try source.firstBytes.withUnsafeBytes {
                    try bytes($0, further: source.length - Int64($0.count))
                }
            case .stream(let stream, _):
                try contentUnseen(count: stream.length)
            }
            try partEnded()
            return nil
        } catch let problem as FormProblem {
            return problem
        } catch let error as FormError {
            throw error
        } catch {
            return nil
        }
    }

    /// Checks a text field whose value is in a file. Stops reading when the value breaks a rule.
    private mutating func text(of source: FileSource) throws {
        let file = try source.open()
        var chunk = [UInt8](repeating: 0, count: 16 << 10)
        var offset: Int64 = 0
        while offset < source.length {
            let rest = Int(min(Int64(chunk.count), source.length - offset))
            let count = try chunk.withUnsafeMutableBytes {
                try file.read(at: source.start + offset, into: UnsafeMutableRawBufferPointer(rebasing: $0[..<rest]))
            }
            if count == 0 { break }
            try chunk.withUnsafeBytes { try bytes(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            offset += Int64(count)
        }
        try source.check(file)
    }
}

extension PartHeader {
    /// Reads the header from the bytes before a part's content.
    fileprivate init(_ framing: FormLayout.Segment, index: Int) throws(FormProblem) {
        guard case .framing(let data) = framing.source else {
            throw FormProblem(
                .missingContentDisposition, at: framing.offset ?? 0, part: index, "The part has no header.")
        }
        let bytes = ContiguousArray(data)
        // The header follows the delimiter's line, and a line break precedes all delimiters but the first.
        let line = bytes.starts(with: [.carriageReturn, .lineFeed]) ? 2 : 0
        let start = (bytes[line...].firstIndex(of: .lineFeed) ?? bytes.endIndex - 1) + 1
        var limits = FormLimits()
        limits.maximumHeaderBytes = .max
        limits.maximumHeaderFields = .max
        var block = HeaderBlock(offset: (framing.offset ?? 0) + Int64(start), padding: 0)
        _ = try bytes.span.bytes.withUnsafeBytes { buffer throws(FormProblem) in
            try block.append(buffer[start...], limits: limits, partIndex: index)
        }
        try self.init(&block, index: index)
    }
}
