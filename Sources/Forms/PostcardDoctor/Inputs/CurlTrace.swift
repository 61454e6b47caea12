import PostcardForm

/// Reads the output of `curl --trace` and `curl --trace-ascii`, in chunks of any size, and returns the bytes of one
/// recorded request.
///
/// A line of `--trace` has sixteen bytes in hexadecimal digits. A line of `--trace-ascii` has up to 64 characters, ends
/// at a CRLF in the data, and shows a dot for every byte that is not printable ASCII. Every line begins with an offset,
/// which gives the position of each byte. The bytes shown as dots are lost.
struct CurlTrace: Sendable {
    /// The number of the request to return, from 1; `nil` for the first request with a body.
    private let entry: Int?
    private var line: [UInt8] = []
    private var block = Block.other
    private var notation: Notation?
    private var choice = Choice.searching
    /// The number of the current request, from 1.
    private(set) var requestCount = 0
    private(set) var takenEntry: Int?
    /// Whether lines are missing or changed, so that the bytes are uncertain.
    private(set) var isDamaged = false
    /// Whether any connection recorded so far uses TLS.
    private var usesTLS = false
    /// Whether the returned request, or an earlier one, was sent over TLS. If only an earlier one was, `https` in the
    /// request's URL is wrong, and sending may fail. A wrong `http` is worse: it sends the form unencrypted.
    private(set) var isSecure = false

    private enum Notation { case hexadecimal, characters }

    /// The kind of data in the following lines with offsets.
    private enum Block {
        case other
        case header(Filling)
        case data(Filling)
    }

    /// The size of a block of data, and the number of its bytes read so far.
    private struct Filling {
        let size: Int
        var count = 0
    }

    /// The progress in finding the request to return.
    private enum Choice {
        case searching
        /// The head of a request that may have no body. `hasResponse` is `true` once data or a response followed the
        /// head.
        case head([UInt8], hasResponse: Bool)
        case body
        case done
    }

    /// The maximum length of a line, longer than curl's data lines. Longer notes on connections are cut.
    private static let maximumLineLength = 512
    private static let maximumHeadBytes = 64 << 10

    init(entry: Int?) {
        self.entry = entry
    }

    /// Whether the trace shows dots instead of some bytes.
    var isLossy: Bool { notation == .characters }

    /// Whether these first bytes are those of a `curl --trace` file.
    static func isTrace(_ start: some Collection<UInt8>) -> Bool {
        Title(start.prefix { $0 != UInt8(ascii: "\n") }) != nil
    }

    /// Reads the next bytes of the trace, and appends the bytes of the request to `output`.
    mutating func read(_ chunk: RawSpan, into output: inout [UInt8]) {
        countSteps(chunk.byteCount)
        for position in 0..<chunk.byteCount {
            let byte = chunk.unsafeLoad(fromByteOffset: position, as: UInt8.self)
            if byte == UInt8(ascii: "\n") {
                endLine(into: &output)
            } else if line.count < Self.maximumLineLength {
                line.append(byte)
            }
        }
    }

    mutating func finish(into output: inout [UInt8]) {
        if !line.isEmpty { endLine(into: &output) }
        endBlock(into: &output)
        if case .head(let head, _) = choice { take(head, into: &output) }
    }

    // MARK: - Lines

    private mutating func endLine(into output: inout [UInt8]) {
        defer { line.removeAll(keepingCapacity: true) }
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        if let data = DataLine(line) {
            switch block {
            case .other: break
            case .header(var filling):
                readData(data, &filling, into: &output)
                block = .header(filling)
            case .data(var filling):
                readData(data, &filling, into: &output)
                block = .data(filling)
            }
        } else if let title = Title(line[...]) {
            endBlock(into: &output)
            begin(title, into: &output)
        }
    }

    private mutating func readData(_ data: DataLine, _ filling: inout Filling, into output: inout [UInt8]) {
        let notation = notation ?? (data.looksHexadecimal ? .hexadecimal : .characters)
        self.notation = notation
        var bytes: [UInt8] = []
        switch notation {
        case .hexadecimal:
            if data.offset != filling.count { isDamaged = true }
            bytes = data.bytes
        case .characters:
            bytes = lineBreak(from: filling.count, to: data.offset) + data.characters
        }
        filling.count += bytes.count
        hand(on: bytes, into: &output)
    }

    /// The bytes between the data of two lines: CRLF, or nothing after a full line. Blanks come first if an editor has
    /// removed them from the end of the first line.
    private mutating func lineBreak(from end: Int, to next: Int) -> [UInt8] {
        guard next >= end, next - end <= 66 else {
            isDamaged = true
            return []
        }
        let gap = next - end
        return gap >= 2
            ? [UInt8](repeating: .init(ascii: " "), count: gap - 2) + Array("\r\n".utf8)
            : [UInt8](repeating: .init(ascii: " "), count: gap)
    }

    private mutating func endBlock(into output: inout [UInt8]) {
        switch block {
        case .other:
            return
        case .header(let filling), .data(let filling):
            block = .other
            if filling.count == filling.size { return }
            if notation == .characters, filling.count < filling.size, filling.size - filling.count <= 66 {
                hand(on: lineBreak(from: filling.count, to: filling.size), into: &output)
            } else {
                isDamaged = true
            }
        }
    }

    // MARK: - Requests

    private mutating func begin(_ title: Title, into output: inout [UInt8]) {
        switch title.kind {
        case .sentHeader(let size):
            // A long head may be in several blocks. Two requests have data or a response between their heads.
            if case .head(_, hasResponse: false) = choice {} else { beginRequest(into: &output) }
            block = .header(Filling(size: size))
        case .sentData(let size):
            if case .head(let head, _) = choice { take(head, into: &output) }
            block = .data(Filling(size: size))
        case .received:
            if case .head(let head, _) = choice { choice = .head(head, hasResponse: true) }
        case .secureConnection:
            usesTLS = true
        case .other:
            break
        }
    }

    private mutating func beginRequest(into output: inout [UInt8]) {
        if case .head(let head, _) = choice, entry != nil { take(head, into: &output) }
        requestCount += 1
        switch choice {
        case .body, .done:
            choice = .done
        case .searching, .head:
            choice = entry == nil || entry == requestCount ? .head([], hasResponse: false) : .searching
            isSecure = usesTLS
        }
    }

    private mutating func take(_ head: [UInt8], into output: inout [UInt8]) {
        takenEntry = requestCount
        output += head
        choice = .body
    }

    private mutating func hand(on bytes: [UInt8], into output: inout [UInt8]) {
        switch choice {
        case .searching, .done: break
        case .body: output += bytes
        case .head(var head, let hasResponse):
            choice = .searching
            head += bytes.prefix(Self.maximumHeadBytes - head.count)
            choice = .head(head, hasResponse: hasResponse)
        }
    }
}

/// A line that introduces data, such as `=> Send data, 325 bytes (0x145)`.
private struct Title {
    enum Kind {
        case sentHeader(size: Int)
        case sentData(size: Int)
        case received
        /// A note that appears only for connections over TLS.
        case secureConnection
        case other
    }

    let kind: Kind

    /// Parses a title line. `nil` for any other line.
    init?(_ line: some Collection<UInt8>) {
        // Only the times and numbers of `--trace-time` and `--trace-ids` may precede the title.
        let title = line.prefix(100).drop { Self.stamp.contains($0) }
        guard title.first == UInt8(ascii: "=") || title.first == UInt8(ascii: "<") else { return nil }
        if title.starts(with: "== Info".utf8) {
            let note = title.dropFirst(7).drop { $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: " ") }
            kind = Self.notesOnTLS.contains { note.starts(with: $0.utf8) } ? .secureConnection : .other
        } else if title.starts(with: "<= Recv ".utf8) {
            kind = title.dropFirst(8).starts(with: "header,".utf8) ? .received : .other
        } else if title.starts(with: "=> Send ".utf8) {
            let words = title.dropFirst(8).split(separator: UInt8(ascii: ","), maxSplits: 1)
            let digits = words.dropFirst().first?.drop { $0 == UInt8(ascii: " ") }.prefix { $0.isDigit }
            switch (words.first, digits.flatMap { Int(String(decoding: $0, as: UTF8.self)) }) {
            case (let name?, let size?) where name.elementsEqual("header".utf8): kind = .sentHeader(size: size)
            case (let name?, let size?) where name.elementsEqual("data".utf8): kind = .sentData(size: size)
            default: kind = .other
            }
        } else {
            return nil
        }
    }

    private static let stamp = Array("0123456789:.[]- x".utf8)

    /// The beginnings of notes on a TLS connection. With the TLS library of Windows, only the second appears.
    private static let notesOnTLS = ["SSL connection using", "ALPN"]
}

/// A line of data: its offset in the block, a colon, a blank, and the data.
private struct DataLine {
    let offset: Int
    let characters: ArraySlice<UInt8>

    /// Parses a data line. `nil` for any other line.
    init?(_ line: [UInt8]) {
        guard let colon = line.prefix(17).firstIndex(of: UInt8(ascii: ":")), colon >= 4 else { return nil }
        var offset = 0
        for byte in line[..<colon] {
            guard let digit = byte.hexadecimalValue, offset >> 56 == 0 else { return nil }
            offset = offset << 4 | Int(digit)
        }
        self.offset = offset
        // An editor may have removed the blank after the colon of an empty line.
        characters = line[(colon + 1)...].dropFirst()
    }

    /// The bytes of the line's pairs of hexadecimal digits, at most sixteen.
    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        var rest = characters
        while bytes.count < 16, rest.count >= 2, let high = rest.first?.hexadecimalValue,
            let low = rest.dropFirst().first?.hexadecimalValue, rest.count == 2 || rest.dropFirst(2).first == 0x20
        {
            bytes.append(high << 4 | low)
            rest = rest.dropFirst(3)
        }
        return bytes
    }

    /// Whether the line is from `--trace`: it begins with pairs of hexadecimal digits. No request line does.
    var looksHexadecimal: Bool { !bytes.isEmpty && (bytes.count > 1 || characters.count > 48) }
}
