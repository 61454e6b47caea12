import PostcardForm
import PostcardFoundation

/// Finds oddities in a part's header that the parser accepts.
struct HeaderChecks {
    let header: HeaderReading
    let partIndex: Int

    var findings: [Finding] {
        [control, mojibake, path, emptyFilename].compactMap { $0 }
    }

    private func finding(
        _ code: FormProblem.Code, at value: HeaderReading.Located, _ message: String, edits: [Edit]? = nil
    )
        -> Finding
    {
        Finding(
            code, at: value.offset, length: value.bytes.count, part: partIndex, message, edits: edits)
    }

    private var values: [(what: String, located: HeaderReading.Located)] {
        [("name", header.nameValue), ("filename", header.filenameValue)].compactMap { what, value in
            value.map { (what, $0) }
        }
    }

    private var control: Finding? {
        for (what, value) in values {
            guard let index = value.bytes.firstIndex(where: { $0 < 0x20 || $0 == 0x7F }) else { continue }
            // If the value was corrected, indices in it are no offsets in the body.
            let offset = value.isExact ? value.offset + Int64(index) : value.offset
            return Finding(
                .controlInName, at: offset, length: 1, part: partIndex,
                "The \(what) holds a control character.")
        }
        return nil
    }

    private var mojibake: Finding? {
        for (what, value) in values {
            guard let text = String(validating: value.bytes, as: UTF8.self), let meant = Mojibake.undone(text) else {
                continue
            }
            return finding(
                .mojibake, at: value,
                "The \(what) is UTF-8 read as Latin-1: \(text.quoted) was \(meant.quoted).")
        }
        return nil
    }

    private var path: Finding? {
        guard let value = header.filenameValue, let last = lastSeparator(in: value.bytes), last + 1 < value.bytes.count
        else { return nil }
        return finding(
            .pathInFilename, at: value, "The filename has a path before it.",
            edits: value.isExact ? [Edit(at: value.offset, length: Int64(last + 1), [])] : nil)
    }

    /// The index of the last slash or backslash. Backslashes that escape a quote or a backslash, or that end the name,
    /// are ignored.
    private func lastSeparator(in bytes: [UInt8]) -> Int? {
        var last: Int?
        var index = 0
        while index < bytes.count {
            let isEscape =
                bytes[index] == .backslash && index + 1 < bytes.count
                && (bytes[index + 1] == .quote || bytes[index + 1] == .backslash)
            let isLast = index + 1 == bytes.count
            if !isEscape, bytes[index] == .slash || (bytes[index] == .backslash && !isLast) { last = index }
            index += isEscape ? 2 : 1
        }
        return last
    }

    private var emptyFilename: Finding? {
        guard header.filename == "", let value = header.filenameValue else { return nil }
        return finding(.emptyFilename, at: value, "The filename is empty.")
    }

    /// The finding about a mistake in the Content-Type's text. ``ContentChecks`` compares the type with the bytes.
    var mediaType: Finding? {
        guard let field = header.contentTypeField else { return nil }
        let text = String(streamSafe: field.bytes)
        let essence = Self.essence(of: field)
        let edits = Self.registered(essence).map {
            [Edit(at: field.offset, length: Int64(field.essence.count), $0.utf8)]
        }
        if edits != nil, let registered = Self.misspellings[essence] {
            return finding(
                .misspelledMediaType, at: field,
                "The media type \(essence.quoted) is not registered; it is \(registered).", edits: edits)
        }
        guard (try? MediaType(text)) == nil else { return nil }
        return finding(
            .malformedMediaType, at: field, "The Content-Type \(text.quoted) is not a media type.",
            edits: edits)
    }

    /// The media type that a header means, even if it is misspelled.
    static func meantType(of header: HeaderReading) -> String? {
        header.contentTypeField.map { field in
            let essence = essence(of: field)
            return registered(essence) ?? essence
        }
    }

    private static func essence(of field: HeaderReading.Located) -> String {
        String(streamSafe: field.essence.map { $0.asciiLowercased })
    }

    /// The registered media type that a text means. The text may be a misspelled type, or a filename extension.
    static func registered(_ essence: String) -> String? {
        // Long texts and texts that are not ASCII are no known type, and would take long to look up.
        guard essence.utf8.count <= 64, essence.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
        if let registered = misspellings[essence] { return registered }
        return essence.isEmpty || essence.contains("/") ? nil : MediaType.forExtension(of: ".\(essence)")?.value
    }

    private static let misspellings = [
        "image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png", "img/png": "image/png",
        "img/jpeg": "image/jpeg", "images/jpeg": "image/jpeg", "images/png": "image/png", "image/tif": "image/tiff",
        "text/json": "application/json", "application/x-json": "application/json", "video/mov": "video/quicktime",
        "audio/mp3": "audio/mpeg", "application/text": "text/plain", "text": "text/plain",
        "image/svg": "image/svg+xml", "image/JPG": "image/jpeg",
    ]
}
