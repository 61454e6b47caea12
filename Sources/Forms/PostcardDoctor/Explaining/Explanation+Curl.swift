import PostcardForm

extension Explanation {
    /// The curl command that sends the form correctly, with the parts that were found. curl chooses the boundary and
    /// lengths. `nil` if there are no parts, too many to describe, or a name that curl's arguments cannot express.
    package var curl: CurlCommand? {
        guard !parts.isEmpty, parts.count == partCount, !parts.contains(where: { $0.name.utf8.contains(.equals) })
        else { return nil }
        let method = head.flatMap { $0.methodWithoutContent == nil ? $0.method : nil }
        var command = CurlCommand(url: url, method: method ?? "POST")
        command.secretFields = ["Authorization", "Cookie"].filter { head?.all($0.lowercased()).isEmpty == false }
        command.content = .parts(acceptedParts)
        return command
    }

    /// The parts as the chosen servers accept them: an object store's fields before the file, required names, and
    /// brackets for lists in PHP.
    private var acceptedParts: [CurlCommand.Part] {
        let quoted = Set(problems.filter { $0.code == .quotesInName }.compactMap { $0.partIndex })
        let unnamed = Set(problems.filter { $0.code == .fileWithoutFilename }.compactMap { $0.partIndex })
        var counts: [[UInt8]: Int] = [:]
        if needs.bracketsForLists { for part in parts { counts[Array(part.name.utf8), default: 0] += 1 } }
        var fields: [CurlCommand.Part] = []
        var files: [CurlCommand.Part] = []
        let isOrdered =
            needs.fieldsFirst || findings.contains { $0.code == .fieldsAfterFile }
        for (index, part) in parts.enumerated() {
            var name = quoted.contains(index) ? DispositionReading.withoutForeignQuotes(part.name) : part.name
            if needs.bracketsForLists, counts[Array(name.utf8), default: 0] > 1,
                !name.utf8.suffix(2).elementsEqual("[]".utf8)
            {
                name += "[]"
            }
            guard part.filename != nil || unnamed.contains(index) else {
                fields.append(.text(name: name, value: part.text, contentType: part.contentType))
                continue
            }
            if let only = needs.fileName { name = only }
            var filename = part.filename ?? "\(part.name).\(part.fileExtension)"
            if quoted.contains(index) { filename = DispositionReading.withoutForeignQuotes(filename) }
            let file = CurlCommand.Part.file(name: name, filename: filename, contentType: part.contentType)
            if isOrdered { files.append(file) } else { fields.append(file) }
        }
        for needed in needs.fields where !parts.contains(where: { $0.name.utf8.isEqualIgnoringCase(needed) }) {
            // In the field `key`, Amazon S3 replaces `${filename}` with the name of the file.
            fields.append(.text(name: needed, value: "${filename}", contentType: nil))
        }
        return fields + files
    }

    /// The URL of the request, or of a receiver on this machine if the URL is unknown or its host is invalid.
    private var url: String {
        var target = (head?.target ?? "")[...]
        var host = (authority ?? head?.all("host").first?.value ?? "")[...]
        var scheme = scheme ?? (host.hasSuffix(":443") ? "https" : "http")
        for absolute in ["http", "https"] where target.hasPrefix("\(absolute)://") {
            let rest = target.dropFirst(absolute.count + 3)
            scheme = absolute
            host = rest.prefix { !"/?#".contains($0) }
            target = rest[host.endIndex...]
        }
        guard Self.isAuthority(host.utf8) else { return "http://127.0.0.1:8080/uploads" }
        // A target that does not begin with a slash could change the host, so it is left out.
        return "\(scheme)://\(host)\(target.hasPrefix("/") ? Self.escaped(target) : "/")"
    }

    /// Whether a text is a host, with or without a port (RFC 3986 §3.2).
    private static func isAuthority(_ text: Substring.UTF8View) -> Bool {
        var host = text
        if let colon = text.lastIndex(of: UInt8(ascii: ":")), text.last != UInt8(ascii: "]") {
            host = text[..<colon]
            let port = text[text.index(after: colon)...]
            guard port.allSatisfy({ $0.isDigit }),
                (1...65535).contains(Int(Substring(port)) ?? 0)
            else { return false }
        }
        if host.first == UInt8(ascii: "["), host.last == UInt8(ascii: "]"), host.count > 3 {
            return host.dropFirst().dropLast().allSatisfy { $0.hexadecimalValue != nil || $0 == UInt8(ascii: ":") }
        }
        return !host.isEmpty && host.allSatisfy { $0.isLetterOrDigit || "-._~".utf8.contains($0) }
    }

    /// Percent-encodes the bytes of a path and query that a URL does not allow (RFC 3986 §3.3 and §3.4).
    private static func escaped(_ target: Substring) -> String {
        let bytes = Array(target.utf8)
        var escaped: [UInt8] = []
        for (index, byte) in bytes.enumerated() {
            if byte.isLetterOrDigit || "-._~!$&'()*+,;=:@/?[]{}".utf8.contains(byte)
                || byte == .percent && bytes[(index + 1)...].prefix(2).count(where: { $0.hexadecimalValue != nil }) == 2
            {
                escaped.append(byte)
            } else {
                escaped.append(.percent)
                escaped += [byte].hexadecimal.uppercased().utf8
            }
        }
        return String(decoding: escaped, as: UTF8.self)
    }
}

extension Explanation.Part {
    /// A filename extension for the media type of the part, such as `png`.
    fileprivate var fileExtension: String {
        let subtype = contentType?.utf8.split(separator: .semicolon).first?.split(separator: .slash).last
        guard let subtype, subtype.allSatisfy({ $0.isLetter || $0.isDigit }) else { return "bin" }
        let name = String(decoding: subtype.map { $0.asciiLowercased }, as: UTF8.self)
        return name == "jpeg" ? "jpg" : name
    }
}
