/// The `Content-Disposition` of a part (RFC 7578 §4.2).
struct ContentDisposition {
    let name: String
    /// Without any path before it.
    let filename: String?
    private(set) var warnings: [FormProblem] = []

    /// - Parameter fieldName: The name that the part has from the one that it is nested in.
    init(
        _ field: HeaderField, headerOffset: Int64, partIndex: Int, fieldName: String?
    ) throws(FormProblem) {
        let disposition: HeaderParameters
        do {
            disposition = try HeaderParameters(field.value)
        } catch {
            throw .malformedParameter(error.reason, at: headerOffset + Int64(error.index), part: partIndex)
        }
        let fieldOffset = headerOffset + Int64(field.start)
        guard disposition.value == "form-data" || (fieldName != nil && Self.nested.contains(disposition.value)) else {
            throw .dispositionNotFormData(at: fieldOffset, part: partIndex)
        }
        if let duplicate = disposition.duplicate {
            throw .duplicateParameter(
                duplicate.name, at: headerOffset + Int64(duplicate.start), part: partIndex)
        }
        var decoder = NameDecoder(headerOffset: headerOffset, partIndex: partIndex)
        let filename = try decoder.filename(plain: disposition["filename"], extended: disposition["filename*"])
        if let fieldName {
            name = fieldName
            self.filename = filename ?? ""
        } else {
            guard let name = disposition["name"] else { throw .missingName(at: fieldOffset, part: partIndex) }
            if name.value.isEmpty { throw .emptyName(at: headerOffset + Int64(name.start), part: partIndex) }
            self.name = decoder.decode(name)
            self.filename = filename
        }
        if let unknown = disposition.parameters.first(where: { !Self.known.contains($0.name) }) {
            decoder.warn(about: unknown)
        }
        warnings = decoder.warnings
    }

    /// What RFC 2388 §4.2 and old clients write for the files of one field.
    private static let nested: Set<String> = ["file", "attachment"]

    private static let known: Set<String> = ["name", "filename", "filename*"]
}

/// Makes texts of the parameters of a Content-Disposition, and collects what is odd about them.
private struct NameDecoder {
    let headerOffset: Int64
    let partIndex: Int
    private(set) var warnings: [FormProblem] = []

    init(headerOffset: Int64, partIndex: Int) {
        self.headerOffset = headerOffset
        self.partIndex = partIndex
    }

    /// Warns of a parameter that is not read; of several, the first.
    mutating func warn(about parameter: HeaderParameters.Parameter) {
        warnings.append(.ignoredParameter(parameter.name, at: place(of: parameter), part: partIndex))
    }

    /// A name as its sender meant it.
    mutating func decode(_ parameter: HeaderParameters.Parameter) -> String {
        let bytes = parameter.isQuoted ? Self.undoingEscapes(in: parameter.value) : parameter.value
        if let text = String(validating: bytes, as: UTF8.self) { return text }
        warnings.append(.nameNotUTF8(parameter.name, at: place(of: parameter), part: partIndex))
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The one file that `filename` and `filename*` name.
    ///
    /// RFC 7578 §4.2 forbids `filename*`, and senders write it all the same. A receiver takes the one or the
    /// other, so that two names would let a file past whoever looks at the other.
    mutating func filename(
        plain: HeaderParameters.Parameter?, extended: HeaderParameters.Parameter?
    ) throws(FormProblem) -> String? {
        let plainName = plain.map { Self.lastComponent(of: decode($0)) }
        guard let extended else { return plainName }
        guard let extendedName = ExtendedValue.decode(extended.value).map(Self.lastComponent(of:)) else {
            if plain == nil {
                throw .malformedParameter(
                    "The value of filename* is not written as charset, two single quotes and percent-encoded bytes.",
                    at: place(of: extended), part: partIndex)
            }
            warn(about: extended)
            return plainName
        }
        warnings.append(.extendedFilename(at: place(of: extended), part: partIndex))
        guard let plain, let plainName else { return extendedName }
        if plainName == extendedName { return plainName }
        // What .NET sends: the same name, once in the words of RFC 2047.
        if EncodedWord.decode(plain.value).map(Self.lastComponent(of:)) == extendedName { return extendedName }
        throw .contradictingFilenames(at: place(of: extended), part: partIndex)
    }

    private func place(of parameter: HeaderParameters.Parameter) -> Int64 {
        headerOffset + Int64(parameter.start)
    }

    /// Undoes what WHATWG's encoding escapes, and no other percent sign: `100%25` is a name like any other.
    private static func undoingEscapes(in bytes: [UInt8]) -> [UInt8] {
        guard bytes.contains(.percent) else { return bytes }
        var result: [UInt8] = []
        var index = 0
        while index < bytes.count {
            if bytes[index] == .percent, index + 2 < bytes.count,
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

    /// What comes behind the last slash of either kind: old browsers sent whole paths.
    private static func lastComponent(of filename: String) -> String {
        String(filename.utf8.suffix { $0 != .slash && $0 != .backslash }) ?? filename
    }
}

extension BidirectionalCollection {
    /// The longest end of which every element satisfies a condition.
    fileprivate func suffix(while belongs: (Element) -> Bool) -> SubSequence {
        self[(lastIndex { !belongs($0) }.map(index(after:)) ?? startIndex)...]
    }
}
