import PostcardForm
import PostcardFoundation

// Requests copied from a browser: "Copy as cURL", for POSIX shells and for cmd, and "Copy as fetch".

extension HTTPArchive.Entry {
    /// Reads a request from a curl command line. Throws ``InputError`` if the command line has no URL.
    init(curlCommand text: [UInt8]) throws(InputError) {
        let words = text.firstRange(of: "^\"".utf8) == nil ? ShellWords.posix(text) : ShellWords.cmd(text)
        var command = CopiedCommand()
        command.read(words.dropFirst(words.first.map { $0.elementsEqual("$".utf8) } == true ? 2 : 1))
        guard let url = command.url else { throw .malformedCopy("It names no URL.") }
        self.init(
            method: command.method ?? Array((command.body == nil && !command.hasForm ? "GET" : "POST").utf8), url: url,
            headers: command.headers, body: command.body)
    }

    /// Reads a request from a call of `fetch` as browsers write it. Throws ``InputError`` if its arguments are not
    /// JSON.
    init(fetchCall text: [UInt8]) throws(InputError) {
        guard let open = text.firstIndex(of: UInt8(ascii: "(")), let close = text.lastIndex(of: UInt8(ascii: ")")),
            open < close,
            let call = try? JSON([UInt8(ascii: "[")] + text[(open + 1)..<close] + [UInt8(ascii: "]")]),
            let arguments = call.elements, let url = arguments.first?.string
        else { throw .malformedCopy("Its arguments are not JSON, as in what browsers copy.") }
        let options = arguments.dropFirst().first
        self.init(
            method: options?["method"]?.string ?? Array("GET".utf8), url: url,
            headers: options?["headers"]?.stringMembers ?? [], body: options?["body"]?.string)
    }

    /// Makes an entry for a request whose body has exactly these bytes.
    init(method: [UInt8], url: [UInt8], headers: [HTTPArchive.Header], body: [UInt8]?) {
        request = HTTPArchive.Request(
            method: method, url: url, headers: headers, bodySize: nil,
            postData: body.map { HTTPArchive.PostData(bytes: $0) })
    }
}

/// The options of a curl command line that describe the request.
private struct CopiedCommand {
    var method: [UInt8]?
    var url: [UInt8]?
    var headers: [HTTPArchive.Header] = []
    var body: [UInt8]?
    var hasForm = false

    /// The options that have a value but do not describe the request.
    private static let otherValues: Set<String> = [
        "-o", "--output", "-m", "--max-time", "-x", "--proxy", "-w", "--write-out", "--connect-timeout", "--resolve",
        "--retry", "--retry-delay", "--cacert", "--cert", "--key", "-E", "-c", "--cookie-jar", "--limit-rate", "-K",
        "--config", "--trace", "--trace-ascii", "-D", "--dump-header", "--proxy-user", "-U",
    ]
    private static let letters = Set("AbcDdEeFHKmouUwXx".utf8)

    mutating func read(_ words: ArraySlice<[UInt8]>) {
        var rest = words
        while let word = rest.popFirst() {
            var name = String(streamSafe: word)
            var value: [UInt8]?
            if word.count > 2, word[0] == UInt8(ascii: "-"), Self.letters.contains(word[1]) {
                (name, value) = (String(name.prefix(2)), Array(word[2...]))
            }
            func next() -> [UInt8] { value ?? rest.popFirst() ?? [] }
            switch name {
            case "-X", "--request": method = next()
            case "-H", "--header": addHeader(next())
            case "-A", "--user-agent": headers.append((Array("User-Agent".utf8), next()))
            case "-e", "--referer": headers.append((Array("Referer".utf8), next()))
            case "-b", "--cookie": headers.append((Array("Cookie".utf8), next()))
            case "-u", "--user":
                headers.append((Array("Authorization".utf8), Array("Basic \(Data(next()).base64EncodedString())".utf8)))
            case "-d", "--data", "--data-raw", "--data-binary", "--data-ascii":
                let data = next()
                // The content of a file is not in the command.
                let isFile = name != "--data-raw" && data.first == UInt8(ascii: "@")
                if !isFile {
                    if body != nil { body?.append(UInt8(ascii: "&")) }
                    body = body ?? []
                    body?.append(contentsOf: data)
                }
            case "-F", "--form", "--form-string":
                _ = next()
                hasForm = true
            case "--url": url = next()
            case _ where Self.otherValues.contains(name): _ = next()
            case _ where !name.hasPrefix("-") && (url == nil || name.contains("://")): url = word
            default: break
            }
        }
        // curl chooses an unknown boundary when it runs.
        if hasForm, !headers.contains(where: { $0.name.isEqualIgnoringCase("content-type") }) {
            headers.append((Array("Content-Type".utf8), Array("multipart/form-data; boundary=unknown".utf8)))
        }
    }

    /// Adds a header field. Content-Length is left out, because its value is wrong if the browser left out files.
    private mutating func addHeader(_ text: [UInt8]) {
        guard let colon = text.firstIndex(of: .colon) else { return }
        let value = text[(colon + 1)...].drop { $0 == .space }
        if !value.isEmpty, !text[..<colon].isEqualIgnoringCase("content-length") {
            headers.append((Array(text[..<colon]), Array(value)))
        }
    }
}

/// Splits a command line into words and runs nothing.
private enum ShellWords {
    /// The finished words, and the word that is being read.
    private struct Words {
        private var all: [[UInt8]] = []
        private var last: [UInt8] = []
        private var isInWord = false

        mutating func append(_ bytes: some Sequence<UInt8>) {
            last.append(contentsOf: bytes)
            isInWord = true
        }

        mutating func end() {
            if isInWord { all.append(last) }
            (last, isInWord) = ([], false)
        }

        consuming func finished() -> [[UInt8]] {
            end()
            return all
        }
    }

    /// Splits a line by the rules of POSIX shells, with the `$'…'` of bash.
    static func posix(_ text: [UInt8]) -> [[UInt8]] {
        var words = Words()
        var rest = text[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\\"):
                guard let next = rest.popFirst() else { break }
                if next == UInt8(ascii: "\r"), rest.first == UInt8(ascii: "\n") { rest.removeFirst() }
                if next != UInt8(ascii: "\n"), next != UInt8(ascii: "\r") { words.append([next]) }
            case UInt8(ascii: "'"): words.append(taken(&rest, to: UInt8(ascii: "'")))
            case UInt8(ascii: "$") where rest.first == UInt8(ascii: "'"):
                rest.removeFirst()
                words.append(escaped(&rest))
            case UInt8(ascii: "\""): words.append(quoted(&rest, escapable: "\"\\$`\n"))
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"), UInt8(ascii: ";"):
                words.end()
            default: words.append([byte])
            }
        }
        return words.finished()
    }

    /// Splits a line by the rules of cmd and of Windows programs. A caret escapes the next character.
    static func cmd(_ text: [UInt8]) -> [[UInt8]] {
        var plain: [UInt8] = []
        var rest = text.filter { $0 != UInt8(ascii: "\r") }[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "^"), let next = rest.popFirst() else {
                plain.append(byte)
                continue
            }
            // A caret continues the line. An empty line after the caret is a line break that lost its CR when the
            // command was copied.
            if next != UInt8(ascii: "\n") {
                plain.append(next)
            } else if rest.first == UInt8(ascii: "\n") {
                rest.removeFirst()
                plain += "\r\n".utf8
            }
        }
        var words = Words()
        rest = plain[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "\"") {
                words.append(quoted(&rest, escapable: "\"\\"))
            } else if byte <= 0x20 {
                words.end()
            } else {
                words.append([byte])
            }
        }
        return words.finished()
    }

    private static func taken(_ rest: inout ArraySlice<UInt8>, to end: UInt8) -> [UInt8] {
        let text = rest.prefix { $0 != end }
        rest = rest[text.endIndex...].dropFirst()
        return Array(text)
    }

    private static func quoted(_ rest: inout ArraySlice<UInt8>, escapable: String) -> [UInt8] {
        var text: [UInt8] = []
        while let byte = rest.popFirst(), byte != UInt8(ascii: "\"") {
            if byte == UInt8(ascii: "\\"), let next = rest.first, escapable.utf8.contains(next) {
                rest.removeFirst()
                if next != UInt8(ascii: "\n") { text.append(next) }
            } else {
                text.append(byte)
            }
        }
        return text
    }

    private static let letters: [UInt8: UInt8] = [
        UInt8(ascii: "n"): 0x0A, UInt8(ascii: "r"): 0x0D, UInt8(ascii: "t"): 0x09, UInt8(ascii: "a"): 0x07,
        UInt8(ascii: "b"): 0x08, UInt8(ascii: "e"): 0x1B, UInt8(ascii: "f"): 0x0C, UInt8(ascii: "v"): 0x0B,
    ]

    /// The text of `$'…'` up to its closing quote, with the escapes of C.
    private static func escaped(_ rest: inout ArraySlice<UInt8>) -> [UInt8] {
        var text: [UInt8] = []
        while let byte = rest.popFirst(), byte != UInt8(ascii: "'") {
            guard byte == UInt8(ascii: "\\"), let kind = rest.popFirst() else {
                text.append(byte)
                continue
            }
            let most = [UInt8(ascii: "x"): 2, UInt8(ascii: "u"): 4, UInt8(ascii: "U"): 8][kind]
            if let most {
                let digits = rest.prefix(most).prefix { $0.hexadecimalValue != nil }
                rest = rest[digits.endIndex...]
                let number = digits.reduce(UInt32(0)) { $0 << 4 | UInt32($1.hexadecimalValue ?? 0) }
                if most == 2 {
                    text.append(UInt8(truncatingIfNeeded: number))
                } else {
                    text += String(Unicode.Scalar(number) ?? "\u{FFFD}").utf8
                }
            } else if (UInt8(ascii: "0")...UInt8(ascii: "7")).contains(kind) {
                let digits = rest.prefix(2).prefix { (UInt8(ascii: "0")...UInt8(ascii: "7")).contains($0) }
                rest = rest[digits.endIndex...]
                text.append(
                    UInt8(truncatingIfNeeded: digits.reduce(UInt32(kind & 7)) { $0 << 3 | UInt32($1 & 7) }))
            } else {
                text.append(letters[kind] ?? kind)
            }
        }
        return text
    }
}
