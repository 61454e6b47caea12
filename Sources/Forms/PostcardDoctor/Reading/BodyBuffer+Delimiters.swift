import PostcardForm

/// The last bytes of pictures that all end alike.
enum PictureEnd {
    static let jpeg: [UInt8] = [0xFF, 0xD9]
    static let png = Array("IEND".utf8) + [0xAE, 0x42, 0x60, 0x82]
}

extension BodyBuffer {
    /// Whether a field of a part's header begins here.
    func beginsHeader(at index: Int) -> Bool {
        holds("content-disposition", at: index) || holds("content-type", at: index)
            || holds("content-transfer-encoding", at: index) || holds("content-length", at: index)
    }

    /// Whether a line ends here and a part's header begins on the next line, or after one blank line.
    func beginsPart(behind index: Int) -> Bool { header(behind: index) != nil }

    /// Whether the line begins with more dashes than a delimiter has.
    func followsDashes(_ index: Int) -> Bool {
        var start = index
        while let byte = self[start - 1], byte == .dash { start -= 1 }
        countSteps(index - start)
        return start < index && (start == 0 || lineBreak(before: start) != nil)
    }

    /// Whether a dash comes before an index, or only dashes and blanks on its line. Two dashes that end a text are the
    /// text's: a delimiter has one too many, or none.
    func isIndented(_ index: Int) -> Bool {
        if self[index - 1] == .dash {
            let isText =
                self[index - 3].map { $0 != .dash && !$0.isBlank } == true && lineBreak(before: index - 2) == nil
            return !(isText && self[index - 2] == .dash)
        }
        guard self[index - 1]?.isBlank == true, let start = lineStart(before: index, atMost: 64) else { return false }
        return bytes[start..<index].allSatisfy { $0 == .dash || $0.isBlank }
    }

    /// Whether the byte before an index may have been a part of the line break before it, or got behind it: it follows CR
    /// alone, or is no letter and a whole line.
    func endsInStrayByte(_ index: Int) -> Bool {
        guard let byte = self[index - 1], byte != .lineFeed, let before = lineBreak(before: index - 1) else {
            return false
        }
        return before == .cr || !(byte.isLetter || byte.isDigit)
    }

    /// Whether the last bytes of a JPEG or PNG come before an index.
    func endsPicture(at index: Int) -> Bool {
        [PictureEnd.jpeg, PictureEnd.png].contains { holds($0, at: index - $0.count) }
    }

    func holdsByteOrderMark(before index: Int) -> Bool {
        index == 3 && offset == 0 && holds([0xEF, 0xBB, 0xBF], at: 0)
    }
}
