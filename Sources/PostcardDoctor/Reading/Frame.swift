import PostcardForm

/// What the delimiters of a body really look like, whatever its Content-Type says.
struct Frame: Sendable {
    /// The boundary that the body uses.
    let boundary: [UInt8]
    /// What stands before it: two dashes, or as many as the body has.
    let dashes: Int
    /// How the frame's lines end, told by the first of them.
    let lineBreak: LineBreak
    /// Finds what may be a delimiter.
    let search: ByteSearch

    var delimiter: [UInt8] { search.needle }

    /// Whether every server reads the boundary alike.
    var isBoundaryCertain: Bool { boundary.allSatisfy(\.isBoundaryCharacter) && boundary.count <= 70 }

    init(boundary: some Sequence<UInt8>, dashes: Int = 2, lineBreak: LineBreak = .crlf) {
        self.boundary = Array(boundary)
        self.dashes = dashes
        self.lineBreak = lineBreak
        search = ByteSearch(Array(repeating: .dash, count: dashes) + self.boundary)
    }

    /// As many bytes of a body tell what its delimiters look like.
    static let opening = 64 << 10

    /// Looks at a body's opening.
    ///
    /// - Parameter announced: The boundary that the Content-Type names.
    /// - Returns: `nil` where nothing looks like a delimiter.
    init?(opening window: BodyWindow, announced: [UInt8]?) {
        if let announced, !announced.isEmpty, let frame = Frame(announced: announced, in: window),
            !frame.isCloseDelimiterOfAnother(in: window)
        {
            self = frame.frameBefore(in: window) ?? frame
            return
        }
        var start = 0
        var lines = 0
        while start < min(window.count, Self.opening), lines < 200 {
            let end = window.lineEnd(from: start, endingAtCarriageReturn: true)
            if let frame = Frame(line: start..<end, of: window, announced: announced) {
                self = frame
                return
            }
            guard let lineBreak = window.lineBreak(at: end) else { break }
            start = end + lineBreak.length
            lines += 1
        }
        return nil
    }

    /// The frame that the Content-Type announces, where the body has it.
    private init?(announced: [UInt8], in window: BodyWindow) {
        let frame = Frame(boundary: announced)
        var index = 0
        while let found = frame.search.firstIndex(in: window.bytes, from: index, end: window.count) {
            let behind = found + frame.delimiter.count
            let padded = window.skippingBlanks(from: behind)
            let beginsLine =
                found == 0 || window.lineBreak(before: found) != nil || window.holdsByteOrderMark(before: found)
            if beginsLine {
                if let lineBreak = window.lineBreak(at: padded) {
                    self.init(boundary: announced, lineBreak: lineBreak)
                    return
                }
                let isClose = window[behind] == .dash && window[behind + 1] == .dash
                let isPadded = padded > behind
                if isClose || isPadded || window.beginsHeader(at: behind) || behind == window.count {
                    self = frame
                    return
                }
            } else if window.beginsPart(behind: behind), !window.followsDashes(found) {
                self = frame
                return
            }
            index = found + 1
        }
        return nil
    }

    /// Whether what was found are the dashes of a close delimiter, taken into the Content-Type.
    private func isCloseDelimiterOfAnother(in window: BodyWindow) -> Bool {
        guard boundary.count > 2, boundary.suffix(2).elementsEqual("--".utf8) else { return false }
        let shorter = Frame(boundary: boundary.dropLast(2))
        guard let first = shorter.search.firstIndex(in: window.bytes, from: 0, end: window.count) else { return false }
        return window.lineBreak(at: first + shorter.delimiter.count) != nil
    }

    /// The frame of another boundary that the body begins with: the first part is behind a delimiter of it.
    private func frameBefore(in window: BodyWindow) -> Frame? {
        var start = 0
        while let lineBreak = window.lineBreak(at: start) { start += lineBreak.length }
        let end = window.lineEnd(from: start, endingAtCarriageReturn: true)
        guard window.bytes[start..<end].starts(with: "--".utf8), !window.holds(delimiter, at: start) else { return nil }
        return Frame(line: start..<end, of: window, announced: boundary)
    }

    /// The frame that a line would be the first delimiter of: a part's header follows.
    private init?(line: Range<Int>, of window: BodyWindow, announced: [UInt8]?) {
        guard (1...200).contains(line.count), let lineBreak = window.lineBreak(at: line.upperBound) else { return nil }
        guard window.beginsPart(behind: line.upperBound) else { return nil }
        var text = window.bytes[line]
        if text.starts(with: [0xEF, 0xBB, 0xBF]) { text = text.dropFirst(3) }
        while let last = text.last, last.isBlank { text.removeLast() }
        guard text.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }), !text.isEmpty else { return nil }
        if text.starts(with: "--".utf8), text.count > 2 {
            self.init(boundary: text.dropFirst(2), lineBreak: lineBreak)
            return
        }
        let bare = text.drop { $0 == .dash }
        guard !bare.isEmpty, !bare.contains(.colon) || announced.map({ bare.elementsEqual($0) }) == true else {
            return nil
        }
        self.init(boundary: bare, dashes: text.count - bare.count, lineBreak: lineBreak)
    }
}

extension BodyWindow {
    /// Whether a field of a part's header begins here.
    func beginsHeader(at index: Int) -> Bool {
        holds("content-disposition", at: index) || holds("content-type", at: index)
            || holds("content-transfer-encoding", at: index) || holds("content-length", at: index)
    }

    /// Whether a line ends here and a part's header begins on the next, or on the one behind a blank one.
    func beginsPart(behind index: Int) -> Bool {
        guard let lineBreak = lineBreak(at: index) else { return false }
        let next = index + lineBreak.length
        if beginsHeader(at: next) { return true }
        guard let second = self.lineBreak(at: next) else { return false }
        return beginsHeader(at: next + second.length)
    }

    /// Whether more dashes than a delimiter has begin the line.
    func followsDashes(_ index: Int) -> Bool {
        var start = index
        while let byte = self[start - 1], byte == .dash { start -= 1 }
        return start < index && (start == 0 || lineBreak(before: start) != nil)
    }

    func holdsByteOrderMark(before index: Int) -> Bool {
        index == 3 && offset == 0 && holds([0xEF, 0xBB, 0xBF], at: 0)
    }
}
