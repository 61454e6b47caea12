public import PostcardClient
import PostcardDoctor
import PostcardFoundation
import Synchronization

// Expectations of a form, for Swift Testing and XCTest. The message of a failure quotes the part that was sent, and
// says how to change the test.

extension SentUpload {
    /// Expects a text field.
    ///
    /// - Parameters:
    ///   - name: The name of the field.
    ///   - value: The text of the field, compared byte by byte.
    ///   - index: The index among the fields with the name. Defaults to 0, the first.
    ///   - fileID: The location at which failures are reported. Defaults to the caller.
    ///   - filePath: See `fileID`.
    ///   - line: See `fileID`.
    public func expectText(
        _ name: String, _ value: String, at index: Int = 0,
        fileID: String = #fileID, filePath: StaticString = #filePath, line: UInt = #line
    ) {
        let check = Check(self, fileID, filePath, line)
        let write = "Write: form.append(\(Part.shortened(value).debugDescription), named: \(name.debugDescription))"
        guard let part = check.part(name, index, isFile: false, write) else { return }
        if part.isFile {
            check.fail(
                "\(name.debugDescription) must be text, but was sent as a file: \(part.summary). \(write)")
        } else if !part.bytes.elementsEqual(value.utf8) {
            let found = part.text.map { Part.shortened($0).debugDescription } ?? "not in UTF-8"
            let wanted = Part.shortened(value).debugDescription
            // The texts may look the same, because they are long or a letter is written with other code points.
            let place = zip(part.bytes, value.utf8).prefix { $0 == $1 }.count
            let difference = found == wanted ? ": they differ from byte \(place) on" : ""
            check.fail("The field \(check.label(name, index)) is \(found), not \(wanted)\(difference). \(write)")
        }
    }

    /// Expects a file.
    ///
    /// ```swift
    /// sent.expectFile("petImage", at: 1, type: .jpeg, bytes: 1...20_000, hasLocation: false)
    /// ```
    ///
    /// - Parameters:
    ///   - name: The name of the file's field.
    ///   - index: The index among the files with the name. Defaults to 0, the first.
    ///   - type: The media type of the file's header and of its first bytes. Defaults to `nil`, any.
    ///   - bytes: The size of the file. Defaults to `nil`, any.
    ///   - hasLocation: Whether the file contains a location. Defaults to `nil`, either.
    ///   - fileID: The location at which failures are reported. Defaults to the caller.
    ///   - filePath: See `fileID`.
    ///   - line: See `fileID`.
    public func expectFile(
        _ name: String, at index: Int = 0, type: MediaType? = nil, bytes: ClosedRange<Int64>? = nil,
        hasLocation: Bool? = nil,
        fileID: String = #fileID, filePath: StaticString = #filePath, line: UInt = #line
    ) {
        let check = Check(self, fileID, filePath, line)
        let write = "Write: form.append(fileAt: url, named: \(name.debugDescription))"
        guard let part = check.part(name, index, isFile: true, write) else { return }
        guard part.isFile else {
            return check.fail("\(name.debugDescription) must be a file, but was sent as \(part.summary). \(write)")
        }
        let label = check.label(name, index)
        if let type { check.type(type, of: part, label) }
        if let bytes, !bytes.contains(part.size) {
            let isLarge = part.size > bytes.upperBound
            let limit =
                isLarge ? "at most \(Part.number(bytes.upperBound))" : "at least \(Part.number(bytes.lowerBound))"
            let isPicture = part.contentType?.hasPrefix("image/") ?? false
            let advice =
                if !isLarge {
                    FormProblem.Code.fileTooSmall.advice
                } else if isPicture {
                    "Fit it: form.append(fileAt: url, named: \(name.debugDescription), "
                        + "fitting: PictureLimit(maximumBytes: \(bytes.upperBound)))"
                } else {
                    FormProblem.Code.fileTooLarge.advice
                }
            check.fail("\(label) has \(Part.bytes(part.size)), and \(limit) are expected: \(part.summary). \(advice)")
        }
        if let hasLocation, part.hasLocation != hasLocation { check.location(hasLocation, of: part, label) }
    }

    /// Expects that the form has no other parts than the expected ones, and no problem that the Doctor warns about.
    public func expectNothingElse(
        fileID: String = #fileID, filePath: StaticString = #filePath, line: UInt = #line
    ) {
        let check = Check(self, fileID, filePath, line)
        let expected = record.expected.withLock { $0 }
        let others = parts.indices.filter { !expected.contains($0) }.map { parts[$0] }
        if !others.isEmpty {
            check.fail(
                "The form also has \(PartList(others)). Leave \(others.count == 1 ? "it" : "them") out, or expect "
                    + "\(others.count == 1 ? "it" : "them") before expectNothingElse().")
        }
        for finding in explanation.findings { check.fail("\(finding.message) \(finding.advice)") }
    }

    /// Expects that the form follows rules, such as its server's. The parts that the rules name count as expected.
    ///
    /// - Parameters:
    ///   - rules: The rules.
    ///   - fileID: The location at which failures are reported. Defaults to the caller.
    ///   - filePath: See `fileID`.
    ///   - line: See `fileID`.
    public func expect(
        _ rules: FormRules, fileID: String = #fileID, filePath: StaticString = #filePath, line: UInt = #line
    ) {
        let check = Check(self, fileID, filePath, line)
        for (index, part) in parts.enumerated() where rules.fields[part.name] != nil || rules.files[part.name] != nil {
            check.expected(index)
        }
        do throws(FormProblem) {
            var parser = try CheckedFormParser(
                contentType: headerFields[.contentType] ?? "", limits: FormLimits(), rules: rules)
            let bytes = ContiguousArray(body)
            var position = 0
            while try parser.nextEvent(in: bytes.span.bytes, at: &position) != nil {}
            try parser.finish()
        } catch {
            let part = error.partIndex.flatMap { parts.indices.contains($0) ? parts[$0] : nil }
            check.fail("\(error.message)\(part.map { " It is \($0.summary)." } ?? "") \(error.advice ?? "")")
        }
    }
}

/// One expectation of a form, and its location in the test.
private struct Check {
    let upload: SentUpload
    let location: TestLocation

    init(_ upload: SentUpload, _ fileID: String, _ filePath: StaticString, _ line: UInt) {
        self.upload = upload
        location = TestLocation(fileID: fileID, filePath: filePath, line: line)
    }

    func fail(_ message: String) { upload.reporter.fail(message, at: location) }

    func expected(_ index: Int) { upload.record.expected.withLock { _ = $0.insert(index) } }

    /// The name of a part in a message, with its index if there are several.
    func label(_ name: String, _ index: Int) -> String {
        upload.parts(named: name).count > 1 ? "\(name)[\(index)]" : name.debugDescription
    }

    /// The expected part. If there is none, reports a failure with the parts that were sent instead.
    func part(_ name: String, _ index: Int, isFile: Bool, _ write: String) -> SentUpload.Part? {
        let indices = upload.parts.indices.filter { upload.parts[$0].name == name }
        guard index >= 0, index < indices.count else {
            let kind = isFile ? "file" : "field"
            let missing =
                indices.isEmpty ? "There is no \(kind) \(name.debugDescription)" : "There is no \(name)[\(index)]"
            fail("\(missing). The form has \(PartList(upload.parts)). \(write)")
            return nil
        }
        expected(indices[index])
        return upload.parts[indices[index]]
    }

    func type(_ type: MediaType, of part: SentUpload.Part, _ label: String) {
        let declared = part.contentType.flatMap { try? MediaType($0) }
        let found = MediaType.forFirstBytes(part.bytes.prefix(MediaType.firstBytesCount))
        if declared != type {
            let now = part.contentType.map { "is sent as \($0)" } ?? "has no Content-Type"
            let known = found.map { ", and its bytes are \($0)" } ?? ""
            let advice =
                found == nil || found == type
                ? "Write: contentType: MediaType(\(type.value.debugDescription))"
                : FormProblem.Code.fileTypeNotAccepted.advice
            fail("\(label) \(now), not as \(type)\(known): \(part.summary). \(advice)")
        } else if found.map({ $0 != type }) ?? type.isAlwaysRecognised {
            let bytes = found.map { "\($0)" } ?? "of no type that is known"
            fail(
                "\(label) is sent as \(type), and its bytes are \(bytes): \(part.summary). "
                    + FormProblem.Code.fileContentNotAccepted.advice)
        }
    }

    func location(_ isExpected: Bool, of part: SentUpload.Part, _ label: String) {
        switch part.hasLocation {
        case nil:
            fail("The metadata of \(label) cannot be read: \(part.summary). Send a picture or a video.")
        case true?:
            fail(
                "\(label) has the place where it was taken: \(part.summary). Leave out metadata: .asIs, or write: "
                    + (FormProblem.Code.locationInPhoto.swift ?? ""))
        case false?:
            fail("\(label) has no place where it was taken: \(part.summary). Write: metadata: .asIs")
        }
    }
}
