import PostcardForm

extension FormExamination {
    /// What is wrong with where the body ends.
    mutating func finishBody(isWhole: Bool?) {
        switch phase {
        case .content(let frame, let start):
            if openPart == nil {
                if partCount > 0 { noteTruncated(isWhole) }
            } else if let foreignClose {
                add(foreignClose, under: .doctor(.boundaryMismatch))
                closePart(isCutOff: true)
            } else {
                finishOpenPart(frame, start: start, isWhole: isWhole)
            }
        case .epilogue(_, let start, let content):
            noteEpilogue(from: start, holding: content)
        case .header, .opening, .lost:
            break
        }
    }

    /// A last line of the open part's content that closes a form with another boundary.
    var foreignClose: Finding? {
        guard case .content(let frame, _) = phase, let openPart, let line = window.lastLine,
            window.offset(of: line.lowerBound) >= openPart.offset, line.count > 4
        else { return nil }
        let text = window.bytes[line]
        let boundary = text.dropFirst(2).dropLast(2)
        guard text.starts(with: "--".utf8), text.suffix(2).elementsEqual("--".utf8), boundary.count <= 70,
            boundary.allSatisfy({ $0.isBoundaryCharacter && $0 != .space }),
            boundary.contains(where: { $0.isLetter || $0.isDigit })
        else { return nil }
        let found = String(decoding: boundary, as: UTF8.self)
        let used = String(decoding: frame.boundary, as: UTF8.self)
        return Finding(
            .doctor(.wrongCloseDelimiter), at: window.offset(of: boundary.startIndex), length: boundary.count,
            part: openPart.index,
            "The last line closes a form with the boundary \(found.debugDescription), and this one's is "
                + "\(used.debugDescription).",
            fix: "Close the form with the boundary that it began with.")
    }

    /// A part that nothing closes: the body was cut off there, or its writer forgot the close delimiter.
    private mutating func finishOpenPart(_ frame: Frame, start: Int64, isWhole: Bool?) {
        guard let part = openPart else { return }
        let content = part.content
        let endsInLineBreak = content.tail.suffix(2).elementsEqual("\r\n".utf8)
        let endsPicture = content.picture.end.map { $0 == content.size || $0 + 2 == content.size } ?? false
        let isCut = content.picture.isCut(at: content.size) || endsInDelimiter(frame)
        let isMeant = !isCut && isWhole != false && (endsInLineBreak || endsPicture || isWhole == true)
        if isMeant {
            let close = Array(repeating: UInt8.dash, count: 2) + frame.boundary + Array("--\r\n".utf8)
            let lineBreak = endsInLineBreak ? [] : Array("\r\n".utf8)
            // Two dashes may close the form, with a boundary that is not its own.
            let seemsClosed = content.tail.dropLast(endsInLineBreak ? 2 : 0).suffix(2).allSatisfy { $0 == .dash }
            add(
                Finding(
                    .doctor(.missingCloseDelimiter), at: bodySize, part: part.index,
                    "The body ends behind the content of part \(part.index), without a close delimiter.",
                    edits: seemsClosed && content.size > 1 ? nil : [Edit(at: bodySize, lineBreak + close)]))
        } else {
            noteTruncated(isWhole)
        }
        closePart(isCutOff: true)
    }

    /// Whether the body ends in the beginning of a delimiter.
    private func endsInDelimiter(_ frame: Frame) -> Bool {
        let delimiter = Array("\r\n".utf8) + frame.delimiter
        return (3..<delimiter.count).contains { count in
            window.bytes.suffix(count).elementsEqual(delimiter.prefix(count))
        }
    }

    private mutating func noteTruncated(_ isWhole: Bool?) {
        guard case .refused(let problem) = verdict, problem.code == .truncated else {
            add(
                Finding(
                    .form(.truncated), at: bodySize, part: openPart?.index,
                    "The body ends after \(bodySize) bytes, before its close delimiter."),
                under: .form(.contentLengthMismatch))
            return
        }
        add(Finding(problem), under: .form(.contentLengthMismatch))
    }

    private mutating func noteEpilogue(from start: Int64, holding content: EpilogueContent) {
        if content == .part { return }
        if start < bodySize {
            let count = bodySize - start
            let isClosedAgain = content == .textAndCloseDelimiter
            let epilogue = Finding(
                .doctor(.epilogue), at: start, length: Int(min(count, 64)),
                "\(count) bytes follow the close delimiter's line"
                    + (isClosedAgain ? ", and close the form again: the first may be content." : "."),
                edits: isClosedAgain ? nil : [Edit(at: start, length: count, [])])
            add(isClosedAgain ? epilogue.weighing(.error) : epilogue)
        } else if window.lineBreak(before: window.count) == nil, !findings.holds(.doctor(.wrongCloseDelimiter)) {
            add(
                Finding(
                    .doctor(.noFinalLineBreak), at: bodySize, "The body ends with the close delimiter's dashes.",
                    edits: [Edit(at: bodySize, "\r\n".utf8)]))
        }
    }

    // MARK: - The whole

    /// What only shows when all parts are known.
    mutating func noteWhole() {
        if case .epilogue = phase, partCount == 0 {
            add(Finding(.doctor(.noParts), at: 0, "The form is closed before its first part."))
        }
        noteTrailingLineBreaks()
        noteRepetitions()
        noteOrder()
        if let finding = ServerProfile.commonDefaults(bodySize: bodySize, partCount: partCount, parts: parts) {
            add(finding)
        }
    }

    /// Where each part but the last ends in CRLF, texts do as pictures do.
    private mutating func noteTrailingLineBreaks() {
        let code = DoctorCode.extraLineBreakBeforeDelimiter
        // Texts may be meant to end so, all of them; a picture is not.
        let isSettled = findings.holds(.doctor(code))
        let places = trailingLineBreaks.places(besidesPicture: isSettled)
        for place in places {
            let finding = Finding(
                .doctor(code), at: place.offset, length: 2, part: place.part,
                "The content ends in a line break, as each part's before the last does.",
                edits: isSettled ? [Edit(at: place.offset, length: 2, [])] : nil)
            add(isSettled ? finding : finding.weighing(.warning))
        }
    }

    private mutating func noteRepetitions() {
        var filenames: [String: Int] = [:]
        var digests: [String: Int] = [:]
        for (index, part) in parts.enumerated() {
            guard let filename = part.filename else { continue }
            if !filename.isEmpty {
                if let first = filenames[filename] {
                    add(
                        Finding(
                            .doctor(.repeatedFilename), at: part.offset, part: index,
                            "The file has the filename of part \(first): \(filename.debugDescription)."))
                } else {
                    filenames[filename] = index
                }
            }
            guard part.size > 0 else { continue }
            if let first = digests[part.sha256] {
                add(
                    Finding(
                        .doctor(.repeatedContent), at: part.offset, part: index,
                        "The file's \(part.size) bytes are those of part \(first)."))
            } else {
                digests[part.sha256] = index
            }
        }
    }

    /// S3 reads fields up to the file; a form with its policy is for S3.
    private mutating func noteOrder() {
        let names = parts.map { $0.name.lowercased() }
        guard names.contains("key"), names.contains("policy") || names.contains(where: { $0.hasPrefix("x-amz-") }),
            let late = ServerProfile.fieldAfterFile(parts)
        else { return }
        add(
            Finding(
                .doctor(.fieldsAfterFile), at: parts[late].offset, part: late,
                "The field \(parts[late].name.debugDescription) follows the file, where S3 does not read it."))
    }
}

/// Parts that are no pictures and end in CRLF.
struct TrailingLineBreaks: Sendable {
    private var places: [(offset: Int64, part: Int)] = []
    private var count = 0
    private var endsLast = false
    private var holdsFile = false

    /// More than that is not looked at.
    private static let maximum = 1000

    mutating func take(_ part: FormExamination.OpenPart, isPicture: Bool) {
        count += 1
        if part.header.isFile { holdsFile = true }
        let content = part.content
        endsLast = content.tail.suffix(2).elementsEqual("\r\n".utf8)
        guard endsLast, !isPicture, content.picture.format == nil, places.count < Self.maximum else {
            if isPicture { endsLast = true }
            return
        }
        places.append((part.offset + content.size - 2, part.index))
    }

    /// - Parameter besidesPicture: Whether a picture was found to end so, which settles it.
    func places(besidesPicture: Bool) -> [(offset: Int64, part: Int)] {
        if besidesPicture { return places }
        // All of them, or all but the last: one text in many may be meant to end so, and files of lines all do.
        let isEach = count >= 3 && (places.count == count ? !holdsFile : places.count == count - 1 && !endsLast)
        return isEach ? places : []
    }
}
