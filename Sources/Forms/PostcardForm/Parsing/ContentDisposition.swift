import PostcardFoundation

/// The `Content-Disposition` of a part (RFC 7578 §4.2).
package struct ContentDisposition {
    let name: String
    /// The filename without the path before it.
    let filename: String?
    private(set) var warnings: [FormProblem] = []

    /// Reads the field of a part. `fieldName` is the name of the outer part, if this part is in a `multipart/mixed`.
    init(
        _ field: HeaderField, in header: Span<UInt8>, headerOffset: Int64, partIndex: Int, fieldName: String?
    ) throws(FormProblem) {
        let disposition: HeaderParameters
        var endingInBackslash: HeaderParameters.Parameter?
        do {
            disposition = try HeaderParameters(header, in: field.value)
        } catch {
            guard let raw = HeaderParameters.asBrowsersWrite(header, in: field.value) else {
                throw .malformedParameter(error, headerOffset: headerOffset, part: partIndex)
            }
            (disposition, endingInBackslash) = raw
        }
        // Most fields have only a name, without escapes.
        if fieldName == nil, disposition.others.isEmpty, let only = disposition.first, only.escapes == .none,
            header.holds("name", in: only.name), header.holds("form-data", in: disposition.value), !only.value.isEmpty,
            endingInBackslash == nil, !header.holdsPercent(in: only.value), let text = header.text(in: only.value)
        {
            name = text
            filename = nil
            return
        }
        let fieldOffset = headerOffset + Int64(field.start)
        try Self.check(disposition, in: header, at: headerOffset, fieldOffset, partIndex, isInner: fieldName != nil)
        var found = Found()
        if let first = disposition.first { found.take(first, in: header) }
        for parameter in disposition.others { found.take(parameter, in: header) }
        var decoder = NameDecoder(headerOffset: headerOffset, partIndex: partIndex)
        if let fieldName {
            name = fieldName
        } else {
            let name = try Self.name(in: found, at: headerOffset, fieldOffset, partIndex)
            self.name = decoder.decode(name, in: header)
        }
        let filename = try decoder.filename(plain: found.filename, extended: found.extended, in: header)
        self.filename = fieldName == nil ? filename : filename ?? ""
        // Receivers that join the pieces of RFC 2231 would read this text field as a file.
        if filename == nil, let piece = found.piece {
            let error = HeaderParameters.SyntaxError(index: piece, reason: "A filename is written in pieces.")
            throw .malformedParameter(error, headerOffset: headerOffset, part: partIndex)
        }
        if let unknown = found.unknown { decoder.warn(about: unknown, in: header) }
        if let endingInBackslash { decoder.warn(ofBackslashAtEndOf: endingInBackslash, in: header) }
        warnings = decoder.warnings
    }

    /// Checks the disposition itself, and that no parameter appears twice.
    private static func check(
        _ disposition: HeaderParameters, in header: Span<UInt8>, at headerOffset: Int64, _ fieldOffset: Int64,
        _ partIndex: Int, isInner: Bool
    ) throws(FormProblem) {
        // RFC 2388 §4.2 and old clients use other types for several files of one field.
        guard
            header.holds("form-data", in: disposition.value)
                || isInner
                    && (header.holds("file", in: disposition.value)
                        || header.holds("attachment", in: disposition.value))
        else {
            throw FormProblem(
                .dispositionNotFormData, at: fieldOffset, part: partIndex,
                "A part's Content-Disposition is not form-data.")
        }
        if let duplicate = disposition.duplicate(in: header) {
            throw FormProblem(
                .duplicateParameter, at: headerOffset + Int64(duplicate.start), part: partIndex,
                "A Content-Disposition has \(header.repairedText(in: duplicate.name).lowercased()) twice.")
        }
    }

    private static func name(
        in found: Found, at headerOffset: Int64, _ fieldOffset: Int64, _ partIndex: Int
    ) throws(FormProblem) -> HeaderParameters.Parameter {
        guard let name = found.name else {
            throw FormProblem(
                .missingName, at: fieldOffset, part: partIndex, "A part's Content-Disposition has no name.")
        }
        if name.value.isEmpty {
            let place = headerOffset + Int64(name.start)
            throw FormProblem(.emptyName, at: place, part: partIndex, "A part's name is empty.")
        }
        return name
    }
}

extension ContentDisposition {
    /// The filename as it was sent, with its path; `nil` if it cannot have a path.
    static func sentFilename(in field: HeaderField, of header: Span<UInt8>) -> String? {
        guard header.holdsPath(in: field.value),
            let disposition = (try? HeaderParameters(header, in: field.value))
                ?? HeaderParameters.asBrowsersWrite(header, in: field.value)?.parameters
        else { return nil }
        var found = Found()
        for parameter in disposition.parameters { found.take(parameter, in: header) }
        let extended = found.extended.flatMap { ExtendedValue.decode($0.bytes(in: header)) }
        var decoder = NameDecoder(headerOffset: 0, partIndex: 0)
        let plain = found.filename.map { decoder.decode($0, in: header) }
        return [extended, plain].compactMap { $0 }.first { $0.utf8.contains(.slash) || $0.utf8.contains(.backslash) }
    }
}

extension ContentDisposition {
    /// The unchanged parameters that name a file, each after a semicolon. If a parameter is malformed, all of them are
    /// returned, so that the form is refused.
    package static func fileParameters(of value: String) -> String {
        let bytes = ContiguousArray(value.utf8)
        let (header, range) = (bytes.span, 0..<bytes.count)
        guard
            let disposition = (try? HeaderParameters(header, in: range))
                ?? HeaderParameters.asBrowsersWrite(header, in: range)?.parameters
        else { return header.repairedText(in: (bytes.firstIndex(of: .semicolon) ?? bytes.count)..<bytes.count) }
        return disposition.parameters.filter { parameter in
            header.holds("filename", in: parameter.name) || header.holds("filename*", in: parameter.name)
        }.map { parameter in
            "; " + header.repairedText(in: parameter.start..<parameter.value.upperBound + (parameter.isQuoted ? 1 : 0))
        }.joined()
    }
}

extension FormProblem {
    /// The problem of a malformed parameter. Not inlined, because the initializer is 5 % faster without rare cases.
    @inline(never)
    fileprivate static func malformedParameter(
        _ error: HeaderParameters.SyntaxError, headerOffset: Int64, part partIndex: Int
    ) -> FormProblem {
        malformedParameter(error.reason, at: headerOffset + Int64(error.index), part: partIndex)
    }
}

/// The recognized parameters of the field.
private struct Found {
    var name: HeaderParameters.Parameter?
    var filename: HeaderParameters.Parameter?
    var extended: HeaderParameters.Parameter?
    /// The first parameter that is ignored.
    var unknown: HeaderParameters.Parameter?
    /// The index in the header at which the first piece of a filename begins, if it is split as in RFC 2231.
    var piece: Int?

    mutating func take(_ parameter: HeaderParameters.Parameter, in header: Span<UInt8>) {
        if header.holds("name", in: parameter.name) {
            name = parameter
        } else if header.holds("filename", in: parameter.name) {
            filename = parameter
        } else if header.holds("filename*", in: parameter.name) {
            extended = parameter
        } else {
            if unknown == nil { unknown = parameter }
            if piece == nil, header.begins("filename*", in: parameter.name) { piece = parameter.start }
        }
    }
}

/// Decodes the parameters of a Content-Disposition, and collects warnings about them.
private struct NameDecoder {
    let headerOffset: Int64
    let partIndex: Int
    private(set) var warnings: [FormProblem] = []

    /// Adds a warning about an ignored parameter, unless there is one already.
    @inline(never)
    mutating func warn(about parameter: HeaderParameters.Parameter, in header: Span<UInt8>) {
        warnings.append(
            FormProblem(
                .ignoredParameter, at: place(of: parameter), part: partIndex,
                "The parameter \(header.repairedText(in: parameter.name).lowercased()) was ignored."))
    }

    @inline(never)
    mutating func warn(ofBackslashAtEndOf parameter: HeaderParameters.Parameter, in header: Span<UInt8>) {
        let name = header.repairedText(in: parameter.name).lowercased()
        warnings.append(
            FormProblem(
                .unescapedBackslash, at: place(of: parameter), part: partIndex,
                "The \(name) ends in a backslash that is not escaped."))
    }

    /// The name as its sender meant it, with escapes decoded.
    mutating func decode(_ parameter: HeaderParameters.Parameter, in header: Span<UInt8>) -> String {
        let isPlain = parameter.escapes == .none && !(parameter.isQuoted && header.holdsPercent(in: parameter.value))
        if isPlain, let text = header.text(in: parameter.value) { return text }
        let value = parameter.bytes(in: header)
        let bytes = parameter.isQuoted ? Self.undoingEscapes(in: value) : value
        if let text = String(validating: bytes, as: UTF8.self) { return text }
        let name = header.repairedText(in: parameter.name).lowercased()
        warnings.append(
            FormProblem(.nameNotUTF8, at: place(of: parameter), part: partIndex, "The \(name) is not in UTF-8."))
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The file that `filename` and `filename*` name.
    ///
    /// RFC 7578 §4.2 forbids `filename*`, but some senders use it. Receivers prefer different parameters, so a second
    /// name could get past a filter that checks only the first.
    mutating func filename(
        plain: HeaderParameters.Parameter?, extended: HeaderParameters.Parameter?, in header: Span<UInt8>
    ) throws(FormProblem) -> String? {
        let plainName = if let plain { decode(plain.lastComponent(in: header), in: header) } else { nil as String? }
        guard let extended else { return plainName }
        guard let extendedPath = ExtendedValue.decode(extended.bytes(in: header)) else {
            if plain == nil {
                throw .malformedParameter(
                    "The value of filename* is not written as charset, two single quotes and percent-encoded bytes.",
                    at: place(of: extended), part: partIndex)
            }
            warn(about: extended, in: header)
            return plainName
        }
        if extendedPath.utf8.contains(0) { throw .nulInHeader(at: place(of: extended), part: partIndex) }
        if CombiningMarks.firstExcess(in: extendedPath.utf8) != nil {
            throw .tooManyCombiningMarks(at: place(of: extended), part: partIndex)
        }
        let extendedName = Self.lastComponent(of: extendedPath)
        warnings.append(
            FormProblem(
                .extendedFilename, at: place(of: extended), part: partIndex,
                "A file is named by filename*, which some receivers ignore."))
        guard let plain, let plainName else { return extendedName }
        if Self.lastComponent(of: plainName) == extendedName { return extendedName }
        // .NET sends the same filename twice, once as an encoded word (RFC 2047).
        if EncodedWord.decode(plain.bytes(in: header)).map({ $0.streamSafe }).map(Self.lastComponent(of:))
            == extendedName
        {
            return extendedName
        }
        throw FormProblem(
            .contradictingFilenames, at: place(of: extended), part: partIndex,
            "filename and filename* name different files.")
    }

    private func place(of parameter: HeaderParameters.Parameter) -> Int64 {
        headerOffset + Int64(parameter.start)
    }

    /// The bytes with WHATWG's escapes decoded. Other percent signs are kept: `100%25` is an ordinary name.
    private static func undoingEscapes(in bytes: [UInt8]) -> [UInt8] {
        guard bytes.contains(.percent) else { return bytes }
        var result: [UInt8] = []
        var index = bytes.startIndex
        while index < bytes.endIndex {
            if bytes[index] == .percent, index + 2 < bytes.endIndex,
                let escaped = escapes[[
                    bytes[index + 1], bytes[index + 2].asciiLowercased,
                ]]
            {
                result.append(escaped)
                index += 3
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        return result
    }

    private static let escapes: [[UInt8]: UInt8] = [
        Array("22".utf8): .quote, Array("0d".utf8): .carriageReturn, Array("0a".utf8): .lineFeed,
    ]

    /// The filename after the last slash or backslash, because old browsers sent whole paths. A final backslash is
    /// kept.
    private static func lastComponent(of filename: String) -> String {
        let bytes = filename.utf8
        let path = bytes.last == .backslash ? bytes.dropLast() : bytes[...]
        let start = path.lastIndex { $0 == .slash || $0 == .backslash }.map(path.index(after:))
        return start.flatMap { String(bytes[$0...]) } ?? filename
    }
}

extension Span<UInt8> {
    /// Whether a range may contain a path, because it has a slash, a backslash or an escape.
    fileprivate func holdsPath(in range: Range<Int>) -> Bool {
        for index in range where [.slash, .backslash, .percent].contains(self[index]) { return true }
        return false
    }

    fileprivate func holdsPercent(in range: Range<Int>) -> Bool {
        for index in range where self[index] == .percent { return true }
        return false
    }
}

/// A parameter's value in the encoding of RFC 8187 §3.2, such as `UTF-8''caf%C3%A9.jpg`.
enum ExtendedValue {
    /// The decoded text; `nil` if the value is malformed, or its bytes are not text in a known charset.
    static func decode(_ value: [UInt8]) -> String? {
        let pieces = value.split(separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
        guard pieces.count == 3 else { return nil }
        let decoded = PercentEncoding.decoded(pieces[2])
        return decoded.isWellFormed ? Charset(pieces[0])?.decode(Data(decoded.bytes)) : nil
    }
}

/// A name as an encoded word of RFC 2047 §2, such as `=?utf-8?B?Y2Fmw6kuanBn?=` in a `filename` by .NET.
enum EncodedWord {
    /// The decoded text; `nil` if the value is not an encoded word.
    static func decode(_ value: [UInt8]) -> String? {
        guard value.starts(with: "=?".utf8), value.reversed().starts(with: "=?".utf8), value.count > 4 else {
            return nil
        }
        let pieces = value[2..<(value.count - 2)].split(
            separator: UInt8(ascii: "?"), maxSplits: 2, omittingEmptySubsequences: false)
        guard pieces.count == 3, pieces[1].count == 1, let encoding = pieces[1].first?.asciiLowercased,
            encoding == UInt8(ascii: "b"), let bytes = Data(base64Encoded: Data(pieces[2]))
        else { return nil }
        return Charset(pieces[0])?.decode(bytes)
    }
}
