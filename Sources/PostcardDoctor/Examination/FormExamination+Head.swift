import PostcardForm

// What the Content-Type says, against the body that came.
extension FormExamination {
    /// The frame that was found, if any.
    private var frame: Frame? {
        switch phase {
        case .content(let frame, _): partCount > 0 ? frame : nil
        case .header(let frame, _), .epilogue(let frame, _, _): frame
        case .opening, .lost: nil
        }
    }

    /// The boundary of the delimiters that were found, as a parameter's value.
    var foundBoundary: String? {
        frame.flatMap { $0.isBoundaryCertain ? Self.parameterValue($0.boundary) : nil }
    }

    /// Whether the close delimiter came, or was put in its place.
    var isClosed: Bool {
        if case .epilogue = phase { return true }
        return findings.holds(.doctor(.missingCloseDelimiter))
    }

    var mendedContentType: String? {
        // Where the form ends in another boundary than it began with, its sender knows which was meant.
        guard let frame, announced?.problem != nil || announced?.boundary != frame.boundary, foreignClose == nil else {
            return nil
        }
        let mended = "multipart/form-data; boundary=\(Self.parameterValue(frame.boundary))"
        return frame.isBoundaryCertain && (try? FormParser(contentType: mended)) != nil ? mended : nil
    }

    private static func parameterValue(_ boundary: [UInt8]) -> String {
        let text = String(decoding: boundary, as: UTF8.self)
        return boundary.allSatisfy(\.isTokenCharacter) ? text : "\"\(text)\""
    }

    /// What is wrong with the Content-Type, by itself and against the body.
    mutating func noteHead() {
        guard let announced, let contentType else { return }
        let edits = mendedContentType.map {
            [Edit(in: .head, at: contentType.offset, length: Int64(contentType.value.count), $0.utf8)]
        }
        var cause: FindingCode?
        for finding in announced.findings {
            var finding = finding
            if finding.code == .doctor(.duplicateContentType) {
                finding.edits = edits
                cause = finding.code
            }
            add(finding)
        }
        if let problem = announced.problem {
            var finding = Finding(problem, in: .head, at: contentType.offset, length: contentType.value.count)
            if cause == nil { finding.edits = edits }
            add(inView(ofBody: finding), under: cause)
            cause = cause ?? finding.code
        }
        noteBoundary(announced, contentType, under: cause, edits)
    }

    /// What is wrong with the Content-Type, with what the body shows of how it was meant.
    private func inView(ofBody finding: Finding) -> Finding {
        guard partCount > 0, let frame else { return finding }
        switch finding.code {
        case .form(.notFormData):
            return finding.saying("\(finding.message) The body is a form all the same.")
        case .form(.missingBoundary):
            let used = String(decoding: frame.boundary, as: UTF8.self)
            return finding.saying("\(finding.message) The body uses \(used.debugDescription).")
        default:
            return finding
        }
    }

    private mutating func noteBoundary(
        _ announced: ContentTypeReading, _ contentType: (value: [UInt8], offset: Int64), under cause: FindingCode?,
        _ edits: [Edit]?
    ) {
        guard let boundary = announced.boundary, let frame, frame.boundary != boundary else { return }
        let code = FindingCode.doctor(ContentTypeReading.difference(boundary, frame.boundary))
        let used = String(decoding: frame.boundary, as: UTF8.self)
        let named = String(decoding: boundary, as: UTF8.self)
        let value = contentType.value
        let place = ByteSearch(boundary).firstIndex(in: value, from: 0, end: value.count) ?? 0
        add(
            Finding(
                code, in: .head, at: contentType.offset + Int64(place), length: boundary.count,
                "The Content-Type names the boundary \(named.debugDescription), and the body uses \(used.debugDescription).",
                edits: cause == nil ? edits : nil),
            under: cause)
    }

    /// What the parser says where nothing that was found says it better.
    mutating func noteVerdict() {
        guard case .refused(let problem) = verdict else { return }
        if announced == nil {
            // The request has no Content-Type, which stands first among what was found.
            return
        }
        if announced?.problem != nil { return }
        let boundaryCodes: [DoctorCode] = [
            .boundaryMismatch, .boundaryWithDashes, .boundaryQuotes, .boundarySpaces, .boundaryCase,
            .delimiterWithoutDashes,
        ]
        let causes = boundaryCodes + [.jsonBody, .urlEncodedBody, .base64Body, .percentEncodedBody, .compressedBody]
        if problem.code == .delimiterNotFound, let cause = causes.first(where: { findings.holds(.doctor($0)) }) {
            add(Finding(problem), under: .doctor(cause))
        } else if !findings.holdsError {
            add(Finding(problem))
        }
    }
}
