// The problems of a form that breaks its rules. The name of a limit is its path in the rules.

extension FormProblem {
    private init(
        _ code: Code, _ header: PartHeader, at offset: Int64? = nil, _ message: String, advice: String? = nil,
        limit: Limit? = nil
    ) {
        self.init(code, at: offset ?? header.offset, part: header.index, message, advice: advice, limit: limit)
    }

    /// An untrusted name in quotes, shortened for a message.
    private static func quoted(_ name: String) -> String {
        let isLong = name.unicodeScalars.count > 64
        return (isLong ? String(name.unicodeScalars.prefix(64)) + "…" : name).debugDescription
    }

    private static func list(_ items: [String]) -> String {
        items.prefix(10).joined(separator: ", ") + (items.count > 10 ? ", …" : "")
    }

    private static func times(_ count: Int) -> String { count == 1 ? "once" : "\(count) times" }
}

// MARK: - Which parts are sent

extension FormProblem {
    static func unexpectedField(_ header: PartHeader) -> FormProblem {
        FormProblem(.unexpectedField, header, "No field \(quoted(header.name)) is expected.")
    }

    static func nestedFiles(_ header: PartHeader) -> FormProblem {
        FormProblem(.nestedFiles, header, "The part \(quoted(header.name)) contains files of its own.")
    }

    static func unexpectedFile(_ header: PartHeader) -> FormProblem {
        FormProblem(.unexpectedFile, header, "No file \(quoted(header.name)) is expected.")
    }

    static func fieldInsteadOfFile(_ header: PartHeader) -> FormProblem {
        FormProblem(.fieldInsteadOfFile, header, "\(quoted(header.name)) must be a file, but was sent as text.")
    }

    static func fileInsteadOfField(_ header: PartHeader) -> FormProblem {
        FormProblem(.fileInsteadOfField, header, "\(quoted(header.name)) must be text, but was sent as a file.")
    }

    static func tooManyFields(_ header: PartHeader, atMost: Int) -> FormProblem {
        FormProblem(
            .tooManyFields, header, "The field \(quoted(header.name)) was sent more than \(times(atMost)).",
            advice: "Send it at most \(times(atMost)).",
            limit: Limit(name: "fields.\(header.name).atMost", value: Int64(atMost)))
    }

    static func tooManyFiles(_ header: PartHeader, atMost: Int) -> FormProblem {
        FormProblem(
            .tooManyFiles, header, "More than \(atMost) of the file \(quoted(header.name)) were sent.",
            advice: "Send at most \(atMost).", limit: Limit(name: "files.\(header.name).atMost", value: Int64(atMost)))
    }

    static func missingField(_ name: String, came: Int, atLeast: Int, at offset: Int64) -> FormProblem {
        FormProblem(
            .missingField, at: offset,
            came == 0
                ? "The field \(quoted(name)) is missing."
                : "The field \(quoted(name)) was sent \(times(came)), but \(times(atLeast)) is the minimum.",
            advice: "Send it at least \(times(atLeast)).")
    }

    static func missingFile(_ name: String, came: Int, atLeast: Int, at offset: Int64) -> FormProblem {
        FormProblem(
            .missingFile, at: offset,
            came == 0
                ? "The file \(quoted(name)) is missing."
                : "The file \(quoted(name)) was sent \(times(came)), but \(times(atLeast)) is the minimum.",
            advice: "Send at least \(atLeast), with filename in the Content-Disposition.")
    }
}

// MARK: - Files

extension FormProblem {
    static func fileTooLarge(_ header: PartHeader, _ maximum: Int64, at offset: Int64) -> FormProblem {
        FormProblem(
            .fileTooLarge, header, at: offset, "The file \(quoted(header.name)) has more than \(maximum) bytes.",
            advice: "Send a smaller one.", limit: Limit(name: "files.\(header.name).maximumBytes", value: maximum))
    }

    static func filesTooLarge(_ header: PartHeader, _ maximum: Int64, at offset: Int64) -> FormProblem {
        FormProblem(
            .filesTooLarge, header, at: offset, "All files together have more than \(maximum) bytes.",
            limit: Limit(name: "maximumBytesOfAllFiles", value: maximum))
    }

    static func fileTooSmall(_ header: PartHeader, _ minimum: Int64, at offset: Int64) -> FormProblem {
        FormProblem(
            .fileTooSmall, header, at: offset, "The file \(quoted(header.name)) has fewer than \(minimum) bytes.",
            limit: Limit(name: "files.\(header.name).minimumBytes", value: minimum))
    }

    static func fileTypeNotAccepted(_ header: PartHeader, _ types: [MediaRange]) -> FormProblem {
        let claim = header.contentType == nil ? "has no Content-Type" : "has a Content-Type that is not accepted"
        return FormProblem(
            .fileTypeNotAccepted, header, "The file \(quoted(header.name)) \(claim).",
            advice: "Send one of \(list(types.map(\.value))), and name its type in the part's Content-Type.")
    }

    static func fileContentNotAccepted(
        _ header: PartHeader, _ types: [MediaRange], found: MediaType?, at offset: Int64
    ) -> FormProblem {
        FormProblem(
            .fileContentNotAccepted, header, at: offset,
            found.map { "The file \(quoted(header.name)) begins as \($0) does, which is not accepted." }
                ?? "The file \(quoted(header.name)) does not begin as its Content-Type says.",
            advice: "Send the file's own bytes, of one of \(list(types.map(\.value))).")
    }

    static func fileContentNotAccepted(
        _ header: PartHeader, _ types: [MediaRange], damage: FileDamage, at offset: Int64
    ) -> FormProblem {
        FormProblem(
            .fileContentNotAccepted, header, at: offset + damage.offset,
            "The bytes of the file \(quoted(header.name)) are not its own. \(damage.message)",
            advice: "Send the file's own bytes, of one of \(list(types.map(\.value))).")
    }
}

// MARK: - Text

extension FormProblem {
    static func fieldTooShort(_ header: PartHeader, _ minimum: Int, at offset: Int64) -> FormProblem {
        FormProblem(
            .fieldTooShort, header, at: offset,
            "The field \(quoted(header.name)) has fewer than \(minimum) characters.",
            limit: Limit(name: "fields.\(header.name).minimumCharacters", value: Int64(minimum)))
    }

    static func fieldTooLong(_ header: PartHeader, _ maximum: Int, at offset: Int64) -> FormProblem {
        FormProblem(
            .fieldTooLong, header, at: offset, "The field \(quoted(header.name)) has more than \(maximum) characters.",
            limit: Limit(name: "fields.\(header.name).maximumCharacters", value: Int64(maximum)))
    }

    static func fieldNotUTF8(_ header: PartHeader, at offset: Int64) -> FormProblem {
        FormProblem(.fieldNotUTF8, header, at: offset, "The field \(quoted(header.name)) is not in UTF-8.")
    }

    static func patternMismatch(_ header: PartHeader, _ pattern: TextPattern?, at offset: Int64) -> FormProblem {
        FormProblem(
            .patternMismatch, header, at: offset, "The field \(quoted(header.name)) does not match its pattern.",
            advice: "Send a value that matches \(pattern?.source ?? "") as a whole.")
    }

    static func valueNotAllowed(_ header: PartHeader, _ values: [String], at offset: Int64) -> FormProblem {
        FormProblem(
            .valueNotAllowed, header, at: offset, "The field \(quoted(header.name)) has none of the allowed values.",
            advice: "Send one of \(list(values.map { quoted($0) })).")
    }
}
