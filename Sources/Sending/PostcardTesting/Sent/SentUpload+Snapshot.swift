import PostcardClient
import PostcardDoctor
import PostcardFoundation
import PostcardWire

extension SentUpload {
    /// The form as text, the same in each run, for a snapshot that a reviewer can read in a diff.
    ///
    /// ```
    /// url = "https://api.example.com/pets"
    /// form-string = "name=초코"
    /// # 20113 bytes, sha256 9f2c…, without a position
    /// form = "petImage=@cat.jpg;type=image/jpeg"
    /// ```
    ///
    /// The text is the `form.txt` that `postcard explain --edit` writes, with a digest in place of each file. Keys, lengths,
    /// boundaries and the values of header fields with secrets are left out, because they differ in each run.
    public var snapshot: String {
        var lines = [Self.line("url", url.absoluteString)]
        if method != .post { lines.append(Self.line("request", method.rawValue)) }
        for field in headerFields where !Self.varying.contains(field.name.canonicalName) {
            let isSecret = Self.secret.contains(field.name.canonicalName)
            lines.append("# " + Self.line("header", "\(field.name): \(isSecret ? "…" : field.value)"))
        }
        for part in parts { lines += part.lines }
        if parts.isEmpty { lines.append("# \(explanation)") }
        return lines.map { "\($0)\n" }.joined()
    }

    private static let varying: Set = ["content-type", "content-length", "idempotency-key", "repr-digest"]
    private static let secret: Set = ["authorization", "cookie", "proxy-authorization", "x-api-key"]

    /// An option of a configuration file of curl.
    fileprivate static func line(_ option: String, _ value: String) -> String {
        String(decoding: CurlWord.line(option, value.utf8).dropLast(), as: UTF8.self)
    }
}

extension SentUpload.Part {
    fileprivate var lines: [String] {
        if filename == nil, let text {
            guard let contentType else { return [SentUpload.line("form-string", "\(name)=\(text)")] }
            return [SentUpload.line("form", "\(name)=\(CurlWord.quoted(text));type=\(contentType)")]
        }
        let place = hasLocation.map { $0 ? ", with a position" : ", without a position" } ?? ""
        let type = contentType.map { ";type=\($0)" } ?? ""
        return [
            "# \(size) bytes, sha256 \(sha256)\(place)",
            SentUpload.line("form", "\(name)=\(filename == nil ? "<" : "@")\(filename ?? name)\(type)"),
        ]
    }
}

extension SentUpload: CustomStringConvertible {
    /// What was sent, on one line, such as `POST https://api.example.com/pets, with "name" (text, "초코")`.
    public var description: String {
        "\(method.rawValue) \(url.withoutQuery)" + (parts.isEmpty ? "" : ", with \(PartList(parts))")
    }
}

/// Parts in a message, those of one name together.
struct PartList: CustomStringConvertible {
    let parts: [SentUpload.Part]

    init(_ parts: [SentUpload.Part]) {
        self.parts = parts
    }

    var description: String {
        var names: [String] = []
        for part in parts where !names.contains(part.name) { names.append(part.name) }
        let items = names.map { name in
            let same = parts.filter { $0.name == name }
            let what = same.count == 1 ? same[0].summary : "\(same.count) \(same[0].isFile ? "files" : "texts")"
            return "\(name.debugDescription) (\(what))"
        }
        if items.count < 2 { return items.first ?? "no parts" }
        return items.dropLast().joined(separator: ", ") + " and " + (items.last ?? "")
    }
}

extension SentUpload.Part {
    var isFile: Bool { filename != nil }

    /// What the part is, such as `text, "초코"` or `cat.jpg, image/jpeg, 20,113 bytes`.
    var summary: String {
        if !isFile, let text { return "text, \(Self.shortened(text).debugDescription)" }
        return [filename ?? "no text", contentType, Self.bytes(size)].compactMap(\.self).joined(separator: ", ")
    }

    static func shortened(_ text: String) -> String { text.count > 60 ? "\(text.prefix(60))…" : text }

    /// A number of bytes, such as `20,113 bytes`.
    static func bytes(_ count: Int64) -> String { "\(number(count)) byte\(count == 1 ? "" : "s")" }

    /// A number with commas.
    static func number(_ number: Int64) -> String {
        let digits = Array(String(number))
        return digits.indices.map { index in
            let isGroup = index > 0 && (digits.count - index).isMultiple(of: 3) && digits[index - 1] != "-"
            return (isGroup ? "," : "") + String(digits[index])
        }.joined()
    }
}
