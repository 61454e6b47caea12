import Foundation
import PostcardForm
import PostcardFoundation

extension RecordedBody {
    /// Returns the body with its secrets masked. Secrets in a form are overwritten, so that all offsets stay valid. The
    /// search reads the body line by line instead of parsing a form, because most refused bodies are malformed.
    /// `maybeSecret` says whether an offset is, or may be, inside a part with a secret.
    func hidingSecrets(_ maybeSecret: (Int64) -> Bool) -> RecordedBody {
        let runs = runs
        let delimiter = Self.delimiter(in: runs.first?.bytes ?? [])
        if delimiter == nil, runs.contains(where: { SecretScan.speaksOfSecrets($0.bytes[...]) }) {
            return RecordedBody(pieces: [], length: length, isComplete: isComplete, hidesSecrets: true)
        }
        var scan = SecretScan(delimiter: delimiter)
        var body = self
        body.changeRuns { run in
            scan.erase(in: &run.bytes, beginsInSecret: run.offset > 0 && maybeSecret(run.offset))
        }
        body.hidesSecrets = scan.hasErased
        return body
    }

    /// The first line that looks like a delimiter, without the blanks and tabs at its end.
    static func delimiter(in bytes: [UInt8]) -> [UInt8]? {
        var position = 0
        while position < bytes.count {
            let (line, next) = SecretScan.line(of: bytes, at: position)
            if line.count > 2, SecretScan.beginsWithDashes(line, in: bytes) {
                let end = bytes[line].lastIndex { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") }
                return Array(bytes[line.lowerBound...(end ?? line.lowerBound)])
            }
            position = next
        }
        return nil
    }
}

/// Reads the lines of a form, even a malformed one, and overwrites secrets.
struct SecretScan {
    private enum Place {
        case header(isSecret: Bool)
        case content(from: Int, isSecret: Bool)
    }

    let delimiter: [UInt8]?
    /// Whether all contents and values are overwritten, except those known to be harmless.
    var erasesAll = false
    private(set) var hasErased = false
    /// The number of lines and contents checked so far.
    private(set) var checks = 0

    /// The maximum number of checks, which bounds the processor time. Later lines and contents are masked unchecked.
    private static let mostChecks = 50_000
    /// The maximum length of a header field's name. A longer name counts as the name of a secret.
    private static let longestField = 1 << 10

    mutating func erase(in bytes: inout [UInt8], beginsInSecret: Bool) {
        // The first delimiter may be missing, so the first lines are treated as a header if they look like a header.
        var place = beginsInSecret ? Place.content(from: 0, isSecret: true) : .header(isSecret: erasesAll)
        var (position, previous) = (0, 0..<0)
        while position < bytes.count {
            let (line, next) = Self.line(of: bytes, at: position)
            let isDelimiter =
                Self.beginsWithDashes(line, in: bytes) && delimiter.map { bytes[line].starts(with: $0) } ?? false
            if erasesAll, isDelimiter, let delimiter {
                let behind = line.dropFirst(delimiter.count)
                if let word = behind.first(where: { bytes[$0].isOfWord }) {
                    overwrite(word..<line.upperBound, of: &bytes)
                }
            }
            switch place {
            case .content(let start, let isSecret) where isDelimiter || beginsPart(line, after: previous, in: bytes):
                let end = isDelimiter ? line.lowerBound : previous.lowerBound
                eraseContent(start..<max(start, end), of: &bytes, isSecret: isSecret)
                place = .header(
                    isSecret: isDelimiter ? erasesAll : readHeader(line, of: &bytes, isSecret: erasesAll))
            case .content: break
            case .header where isDelimiter: place = .header(isSecret: erasesAll)
            case .header(let isSecret) where line.isEmpty: place = .content(from: next, isSecret: isSecret)
            case .header(let isSecret): place = .header(isSecret: readHeader(line, of: &bytes, isSecret: isSecret))
            }
            (position, previous) = (next, line)
        }
        if case .content(let start, let isSecret) = place {
            eraseContent(start..<max(start, bytes.count), of: &bytes, isSecret: isSecret)
        }
    }

    /// Whether a line is a `Content-Disposition` field after a line that looks like a delimiter with any boundary.
    private func beginsPart(_ line: Range<Int>, after previous: Range<Int>, in bytes: [UInt8]) -> Bool {
        Self.beginsWithDashes(previous, in: bytes)
            && bytes[line].prefix(Self.disposition.count).elementsEqual(Self.disposition) { $0 | 0x20 == $1 }
    }

    private static let disposition = Array("content-disposition".utf8)

    static func beginsWithDashes(_ line: Range<Int>, in bytes: [UInt8]) -> Bool {
        line.count >= 2 && bytes[line.lowerBound] == .dash && bytes[line.lowerBound + 1] == .dash
    }

    /// Reads and masks a header line. Returns whether the header lines so far show that the part is a secret.
    private mutating func readHeader(_ line: Range<Int>, of bytes: inout [UInt8], isSecret: Bool) -> Bool {
        checks += 1
        guard checks <= Self.mostChecks else {
            overwrite(line, of: &bytes)
            return true
        }
        let colon = bytes[line].firstIndex(of: UInt8(ascii: ":"))
        let name = bytes[line.lowerBound..<(colon ?? line.upperBound)]
        let field = String(streamSafe: name.prefix(Self.longestField))
        if erasesAll {
            // A line without a colon may be content: the blank line after the header may be missing.
            if !Secrets.isHarmless(field) {
                overwrite((colon.map { $0 + 1 } ?? line.lowerBound)..<line.upperBound, of: &bytes)
            }
            return true
        }
        let isNamedSecret = Self.namesSecret(bytes[line])
        if let colon, Secrets.isSecret(field) || Secrets.beginsWithCredentials(bytes[(colon + 1)..<line.upperBound]) {
            overwrite((colon + 1)..<line.upperBound, of: &bytes)
        } else if isSecret, colon == nil || !field.lowercased().hasPrefix("content-") {
            // The blank line after the header is missing, and this line is content.
            overwrite(line, of: &bytes)
        }
        return isSecret || isNamedSecret
    }

    /// Whether a header line contains the name of a secret, even if the line is malformed.
    private static func namesSecret(_ line: ArraySlice<UInt8>) -> Bool {
        let key = Array("name".utf8)
        var count = 0
        for start in line.indices.dropLast(key.count) {
            guard line[start...].prefix(key.count).elementsEqual(key, by: { $0 | 0x20 == $1 }),
                start == line.startIndex || !isOfName(line[start - 1])
            else { continue }
            // The name of an extended or continued parameter has a suffix before its equals sign (RFC 2231).
            let rest = line[(start + key.count)...].prefix(2 * longestName).drop { "*0123456789 \t".utf8.contains($0) }
            guard rest.first == UInt8(ascii: "=") else { continue }
            let value = rest.dropFirst().drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
            let quote = UInt8(ascii: "\"")
            let text =
                value.first == quote
                ? value.dropFirst().prefix { $0 != quote } : value.prefix { !"; \t".utf8.contains($0) }
            let name = String(streamSafe: text)
            count += 1
            if count > mostNames || Secrets.isSecret(name) { return true }
        }
        return false
    }

    /// The maximum number of names in a line, which bounds the processor time. A line with more names is masked.
    private static let mostNames = 16

    private mutating func eraseContent(_ content: Range<Int>, of bytes: inout [UInt8], isSecret: Bool) {
        checks += 1
        guard isSecret || checks > Self.mostChecks || Self.isSecret(bytes[content], &checks) else { return }
        // The line break before a delimiter is part of the delimiter.
        var end = content.upperBound
        for byte in [UInt8(ascii: "\n"), UInt8(ascii: "\r")] where end > content.lowerBound && bytes[end - 1] == byte {
            end -= 1
        }
        overwrite(content.lowerBound..<end, of: &bytes)
    }

    private mutating func overwrite(_ range: Range<Int>, of bytes: inout [UInt8]) {
        guard !range.isEmpty else { return }
        hasErased = true
        for index in range { bytes[index] = UInt8(ascii: "*") }
    }

    /// Returns the line at `start` without its line break (CRLF, CR or LF), and the start of the next line.
    static func line(of bytes: [UInt8], at start: Int) -> (line: Range<Int>, next: Int) {
        let (lineFeed, carriageReturn) = (UInt8(ascii: "\n"), UInt8(ascii: "\r"))
        var end = start
        // For a body of many short lines, this loop is several times faster than slices.
        bytes.withUnsafeBufferPointer { bytes in
            while end < bytes.count, bytes[end] != lineFeed, bytes[end] != carriageReturn { end += 1 }
        }
        guard end < bytes.count else { return (start..<end, end) }
        let isPair = bytes[end] == carriageReturn && end + 1 < bytes.count && bytes[end + 1] == lineFeed
        return (start..<end, end + (isPair ? 2 : 1))
    }
}

// MARK: - Other bodies

extension SecretScan {
    /// Whether content is a secret regardless of its name: credentials, or JSON that contains secrets.
    static func isSecret(_ content: ArraySlice<UInt8>) -> Bool {
        var checks = 0
        return isSecret(content, &checks)
    }

    /// - Parameter checks: The number of checks so far.
    private static func isSecret(_ content: ArraySlice<UInt8>, _ checks: inout Int) -> Bool {
        if Secrets.beginsWithCredentials(content) { return true }
        guard let first = content.first(where: { $0 > 0x20 }), first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
        else { return false }
        return speaksOfSecrets(content, &checks)
    }

    /// Whether a text assigns a value to a secret name, or credentials to any name, as `name=value`, JSON, YAML or XML.
    static func speaksOfSecrets(_ text: ArraySlice<UInt8>) -> Bool {
        var checks = 0
        return speaksOfSecrets(text, &checks)
    }

    private static func speaksOfSecrets(_ text: ArraySlice<UInt8>, _ checks: inout Int) -> Bool {
        var count = 0
        defer { checks += count }
        return text.indices.contains { index in
            guard "=:>".utf8.contains(text[index]) else { return false }
            let before = text[..<index].suffix(longestName)
            let end = before.lastIndex { !" \t\"'".utf8.contains($0) }.map { $0 + 1 } ?? before.startIndex
            let name = before[..<end]
            let start = name.lastIndex { !isOfName($0) }.map { $0 + 1 } ?? name.startIndex
            guard start < end else { return false }
            count += 1
            return count > mostValues || Secrets.isSecret(String(streamSafe: name[start...]))
                || Secrets.beginsWithCredentials(text[(index + 1)...])
        }
    }

    /// The maximum number of values in a text, which bounds the processor time. A text with more values is masked.
    private static let mostValues = 10_000
    private static let longestName = 100

    private static func isOfName(_ byte: UInt8) -> Bool { byte.isOfWord || "_-.%[]+\\".utf8.contains(byte) }
}
