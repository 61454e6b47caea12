import PostcardForm
import PostcardFoundation
import PostcardPictureFormats

extension FormExamination {
    /// Adds the findings about the end of the body.
    mutating func finishBody(isWhole: Bool?) {
        switch phase {
        case .content(let format, let start):
            if openPart == nil {
                if partCount > 0 { noteTruncated() }
            } else if let foreignClose {
                add(foreignClose, under: .boundaryMismatch)
                closePart(isCutOff: true)
            } else {
                finishOpenPart(format, start: start, isWhole: isWhole)
            }
        case .epilogue(_, let start, let content):
            noteEpilogue(from: start, holding: content)
        case .header:
            // Without other errors, `noteVerdict` reports the parser's problem, which may be more serious.
            if findings.holdsError { noteTruncated() }
        case .opening, .lost, .ended:
            break
        }
    }

    /// The finding about the last line of the unfinished part, if the line is a close delimiter with another boundary.
    var foreignClose: Finding? {
        guard case .content(let format, _) = phase, let openPart, let line = buffer.lastLine,
            buffer.offset(of: line.lowerBound) >= openPart.offset, line.count > 4
        else { return nil }
        let text = buffer.bytes[line]
        // A line with the Content-Type's boundary counts even if its number of dashes is wrong.
        let isAnnounced = announcedBoundary.map {
            HiddenParts.core(of: $0[...]).elementsEqual(HiddenParts.core(of: text))
        }
        let boundary = isAnnounced == true ? HiddenParts.core(of: text) : text.dropFirst(2).dropLast(2)
        guard text.starts(with: "--".utf8), isAnnounced == true || text.suffix(2).elementsEqual("--".utf8),
            boundary.count <= 70,
            boundary.allSatisfy({ $0.isBoundaryCharacter && $0 != .space }),
            boundary.contains(where: { $0.isLetter || $0.isDigit })
        else { return nil }
        let found = String(streamSafe: boundary)
        let used = String(streamSafe: format.boundary)
        return Finding(
            .wrongCloseDelimiter, at: buffer.offset(of: boundary.startIndex), length: boundary.count,
            part: openPart.index,
            "The last line closes a form with the boundary \(found.quoted), and this one's is "
                + "\(used.quoted).",
            advice: "Close the form with its first boundary.")
    }

    /// Finishes a part without an end: the body was cut off, or the sender forgot the close delimiter.
    private mutating func finishOpenPart(_ format: DelimiterFormat, start: Int64, isWhole: Bool?) {
        guard let part = openPart else { return }
        let content = part.content
        let endsInLineBreak = content.tail.suffix(2).elementsEqual("\r\n".utf8)
        let endsPicture = content.picture.end.map { $0 == content.size || $0 + 2 == content.size } ?? false
        let isCut = content.picture.isCut(at: content.size) || endsInDelimiter(format)
        let isMeant = !isCut && isWhole != false && (endsInLineBreak || endsPicture || isWhole == true)
        if isMeant {
            let close = Array(repeating: UInt8.dash, count: 2) + format.boundary + Array("--\r\n".utf8)
            let lineBreak = endsInLineBreak ? [] : Array("\r\n".utf8)
            // Two dashes at the end may belong to a close delimiter with another boundary.
            let seemsClosed = content.tail.dropLast(endsInLineBreak ? 2 : 0).suffix(2).allSatisfy { $0 == .dash }
            // A final LF may be content, or a line break that lost its CR.
            let endsInLineFeed = !endsInLineBreak && content.tail.last == .lineFeed
            let isCertain =
                !(seemsClosed && content.size > 1) && !endsInLineFeed && content.tail.last != .carriageReturn
                && !part.hidden.holdsClose && (endsInLineBreak || content.seemsWhole)
            add(
                Finding(
                    .missingCloseDelimiter, at: bodySize, part: part.index,
                    "The body ends after the content of part \(part.index), without a close delimiter.",
                    edits: isCertain ? [Edit(at: bodySize, lineBreak + close)] : nil))
        } else {
            noteTruncated()
        }
        closePart(isCutOff: true)
    }

    /// Whether the body ends with the beginning of a delimiter.
    private func endsInDelimiter(_ format: DelimiterFormat) -> Bool {
        let delimiter = Array("\r\n".utf8) + format.delimiter
        return (3..<delimiter.count).contains { count in
            buffer.bytes.suffix(count).elementsEqual(delimiter.prefix(count))
        }
    }

    private mutating func noteTruncated() {
        guard case .refused(let problem) = verdict, problem.code == .truncated else {
            var part = openPart?.index
            if case .header = phase { part = partCount }
            add(
                Finding(
                    .truncated, at: bodySize, part: part,
                    "The body ends after \(bodySize) bytes, before its close delimiter."),
                under: .contentLengthMismatch)
            return
        }
        add(Finding(problem), under: .contentLengthMismatch)
    }

    private mutating func noteEpilogue(from start: Int64, holding content: EpilogueContent) {
        if content == .part { return }
        if start < bodySize {
            let count = bodySize - start
            let isClosedAgain = content == .textAndCloseDelimiter
            let epilogue = Finding(
                .epilogue, at: start, length: Int(min(count, 64)),
                "\(count) bytes follow the close delimiter's line"
                    + (isClosedAgain ? ", and close the form again: the first may be content." : "."),
                edits: isClosedAgain ? nil : [Edit(at: start, length: count, [])])
            add(isClosedAgain ? epilogue.weighing(.error) : epilogue)
        } else if buffer.lineBreak(before: buffer.count) == nil, !findings.holds(.wrongCloseDelimiter) {
            add(
                Finding(
                    .noFinalLineBreak, at: bodySize, "The body ends with the close delimiter's dashes.",
                    edits: [Edit(at: bodySize, "\r\n".utf8)]))
        }
    }

    // MARK: - The whole

    /// Adds the findings that need all parts of the form.
    mutating func noteWhole() {
        if case .epilogue = phase, partCount == 0 {
            add(Finding(.noParts, at: 0, "The form is closed before its first part."))
        }
        noteTrailingLineBreaks()
        for code in frame.doubtful { findings.leave(code) }
        noteRepetitions()
        noteOrder()
        for finding in PolicyCheck(parts)?.findings(at: Date()) ?? [] { add(finding) }
        if let finding = ServerProfile.commonDefaults(bodySize: bodySize, partCount: partCount, parts: parts) {
            add(finding)
        }
    }

    /// Finds an extra line break at the end of each part. If all parts but the last end in CRLF, the CRLF is extra even
    /// after texts.
    private mutating func noteTrailingLineBreaks() {
        let code = FormProblem.Code.extraLineBreakBeforeDelimiter
        // A line break after a picture is extra (`isSettled`). After a text, it may be intended.
        let isSettled = findings.holds(code)
        let isCertain = isSettled && !trailingLineBreaks.holdsUnknown
        if !isCertain { findings.leave(code) }
        let places = trailingLineBreaks.places(besidesPicture: isSettled)
        for place in places {
            let finding = Finding(
                code, at: place.offset, length: 2, part: place.part,
                "The content ends in a line break, as each part's before the last does.",
                edits: isCertain ? [Edit(at: place.offset, length: 2, [])] : nil)
            add(isSettled ? finding : finding.weighing(.warning))
        }
    }

    private mutating func noteRepetitions() {
        var filenames: [[UInt8]: Int] = [:]
        var digests: [String: Int] = [:]
        for (index, part) in parts.enumerated() {
            guard let filename = part.filename else { continue }
            if !filename.isEmpty {
                let bytes = Array(filename.utf8)
                if let first = filenames[bytes] {
                    add(
                        Finding(
                            .repeatedFilename, at: part.offset, part: index,
                            "The file has the filename of part \(first): \(filename.quoted)."))
                } else {
                    filenames[bytes] = index
                }
            }
            guard part.size > 0 else { continue }
            if let first = digests[part.sha256] {
                add(
                    Finding(
                        .repeatedContent, at: part.offset, part: index,
                        "The file's \(part.size) bytes are those of part \(first)."))
            } else {
                digests[part.sha256] = index
            }
        }
    }

    /// Finds fields after the file in a form for S3, recognized by its policy. S3 ignores fields after the file.
    private mutating func noteOrder() {
        let names = parts.lazy.map { $0.name.utf8 }
        guard names.contains(where: { $0.isEqualIgnoringCase("key") }),
            names.contains(where: { $0.isEqualIgnoringCase("policy") || $0.prefix(6).isEqualIgnoringCase("x-amz-") }),
            let late = ServerProfile.fieldAfterFile(parts)
        else { return }
        add(
            Finding(
                .fieldsAfterFile, at: parts[late].offset, part: late,
                "The field \(parts[late].name.quoted) follows the file, where S3 does not read it."))
    }
}

/// Collects the parts that are not pictures and end in CRLF.
struct TrailingLineBreaks: Sendable {
    private var places: [(offset: Int64, part: Int)] = []
    private var count = 0
    private var pictures = 0
    /// Whether CRLF also follows a picture whose end is unknown, so that the CRLF may be part of the picture.
    private(set) var holdsUnknown = false
    private var endsLast = false
    private var holdsFile = false

    /// The maximum number of parts that are collected. Further parts are ignored.
    private static let maximum = 1000

    mutating func take(_ part: FormExamination.OpenPart, isPicture: Bool) {
        count += 1
        if part.header.isFile { holdsFile = true }
        let content = part.content
        endsLast = content.tail.suffix(2).elementsEqual("\r\n".utf8)
        guard !isPicture else {
            pictures += 1
            endsLast = true
            return
        }
        guard endsLast, places.count < Self.maximum else { return }
        guard !content.picture.hasEnd else {
            holdsUnknown = true
            return
        }
        places.append((part.offset + content.size - 2, part.index))
    }

    /// The places of the extra line breaks; empty if they may be intended. `besidesPicture` says whether a CRLF follows
    /// a complete picture, which shows that the sender adds CRLFs.
    func places(besidesPicture: Bool) -> [(offset: Int64, part: Int)] {
        // If only some parts end in CRLF, a picture proves nothing about the others.
        if besidesPicture { return places.count + pictures == count ? places : [] }
        // Either all parts end in CRLF and none is a file, or all but the last do. One or two parts prove nothing.
        let isEach = count >= 3 && (places.count == count ? !holdsFile : places.count == count - 1 && !endsLast)
        return isEach ? places : []
    }
}

// Compares the Content-Type with the body.
extension FormExamination {
    /// The format of the delimiters in the body; `nil` if none were found.
    private var format: DelimiterFormat? {
        switch phase {
        case .content(let format, _): partCount > 0 ? format : nil
        case .header(let format, _), .epilogue(let format, _, _): format
        case .opening, .lost, .ended: nil
        }
    }

    /// The boundary of the delimiters that were found, written as the value of a parameter.
    var foundBoundary: String? {
        format.flatMap { $0.isBoundaryCertain ? Self.parameterValue($0.boundary) : nil }
    }

    /// Whether the close delimiter was found, or a finding reports that it is missing.
    var isClosed: Bool {
        if case .epilogue = phase { return true }
        return findings.holds(.missingCloseDelimiter)
    }

    var fixedContentType: String? {
        // If the form begins and ends with different boundaries, only the sender knows which is right.
        guard let format, announced?.problem != nil || announced?.boundary != format.boundary, foreignClose == nil
        else { return nil }
        // If the boundaries differ, the parts found inside a content may be the real parts.
        let holdsPart = findings.holds(.partInContent) || openPart?.hidden.isEmpty == false
        if announced?.boundary != format.boundary, holdsPart { return nil }
        let fixed = "multipart/form-data; boundary=\(Self.parameterValue(format.boundary))"
        return format.isBoundaryCertain && (try? FormParser(contentType: fixed)) != nil ? fixed : nil
    }

    private static func parameterValue(_ boundary: [UInt8]) -> String {
        let text = String(streamSafe: boundary)
        return boundary.allSatisfy { $0.isTokenCharacter } ? text : "\"\(text)\""
    }

    /// Adds the findings about the Content-Type, alone and compared with the body.
    mutating func noteHead() {
        guard let announced, let contentType else { return }
        let edits = fixedContentType.map {
            [Edit(in: .head, at: contentType.offset, length: Int64(contentType.value.count), $0.utf8)]
        }
        var cause: FormProblem.Code?
        for finding in announced.findings {
            var finding = finding
            if finding.code == .duplicateContentType {
                finding.edits = edits
                cause = finding.code
            }
            add(finding)
        }
        if let problem = announced.problem {
            var finding = Finding(problem, in: .head, at: contentType.offset, length: contentType.value.count)
            // If an edit fixes the cause, its consequences need no edits of their own.
            finding.edits = cause == nil ? edits : edits.map { _ in [] }
            add(inView(ofBody: finding), under: cause)
            cause = cause ?? finding.code
        }
        noteBoundary(announced, contentType, under: cause, edits)
    }

    /// The finding about the Content-Type, with a message that also describes the body.
    private func inView(ofBody finding: Finding) -> Finding {
        guard partCount > 0, let format else { return finding }
        switch finding.code {
        case .notFormData:
            return finding.saying("\(finding.message) The body is a form all the same.")
        case .missingBoundary:
            let used = String(streamSafe: format.boundary)
            return finding.saying("\(finding.message) The body uses \(used.quoted).")
        default:
            return finding
        }
    }

    private mutating func noteBoundary(
        _ announced: ContentTypeReading, _ contentType: (value: [UInt8], offset: Int64), under cause: FormProblem.Code?,
        _ edits: [Edit]?
    ) {
        guard let boundary = announced.boundary, let format, format.boundary != boundary else { return }
        let code = ContentTypeReading.difference(boundary, format.boundary)
        let used = String(streamSafe: format.boundary)
        let named = String(streamSafe: boundary)
        let value = contentType.value
        let place = ByteSearch(boundary).firstIndex(in: value, from: 0, end: value.count) ?? 0
        add(
            Finding(
                code, in: .head, at: contentType.offset + Int64(place), length: boundary.count,
                "The Content-Type names the boundary \(named.quoted), and the body uses \(used.quoted).",
                advice: code == .boundaryWithDashes && used.count > named.count
                    ? "Name \(used.quoted) in the Content-Type, or begin each delimiter of the body with two dashes and "
                        + "\(named.quoted), and no more." : nil,
                edits: cause == nil ? edits : edits.map { _ in [] }),
            under: cause)
    }

    /// Adds the parser's problem if no finding explains it better.
    mutating func noteVerdict() {
        guard case .refused(let problem) = verdict else { return }
        if announced == nil {
            // The first finding already reports the missing Content-Type.
            return
        }
        if announced?.problem != nil { return }
        let boundaryCodes: [FormProblem.Code] = [
            .boundaryMismatch, .boundaryWithDashes, .boundaryQuotes, .boundarySpaces, .boundaryCase,
            .delimiterWithoutDashes,
        ]
        let causes = boundaryCodes + BodyKind.allCases.map { $0.code }
        if problem.code == .delimiterNotFound, let cause = causes.first(where: { findings.holds($0) }) {
            var finding = Finding(problem)
            if findings.fixes(cause) { finding.edits = [] }
            add(finding, under: cause)
        } else if !findings.holdsError {
            add(Finding(problem))
        }
    }
}
