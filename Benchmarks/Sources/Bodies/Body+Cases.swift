/// A body that is measured.
///
/// Each is made when it is asked for, because together they would not fit into a small machine.
public struct BodyCase: Sendable {
    /// What the body is made of, in a few words.
    public let title: String
    /// Makes the body.
    public let make: @Sendable () -> Body

    public static let randomFile = BodyCase(title: "256 MiB random file", make: Body.randomFile)
    public static let manyFiles = BodyCase(title: "2,000 files of 100 KB", make: Body.manyFiles)
    public static let lineBreaks = BodyCase(title: "nothing but CRLFs", make: Body.lineBreaks)
    public static let wrongLastByte = BodyCase(title: "delimiters wrong in the last byte", make: Body.wrongLastByte)
    public static let wrongMiddleByte = BodyCase(title: "delimiters wrong in the middle", make: Body.wrongMiddleByte)
    public static let rightEnds = BodyCase(title: "every other place right at its ends", make: Body.rightEnds)
    public static let repeatedLetter = BodyCase(title: "a boundary of 70 a's over a's", make: Body.repeatedLetter)
    public static let tinyFields = BodyCase(title: "500,000 tiny fields", make: Body.tinyFields)

    /// All of them.
    public static let all = [
        randomFile, manyFiles, lineBreaks, wrongLastByte, repeatedLetter, wrongMiddleByte, rightEnds, tinyFields,
    ]
}

extension Body {
    /// A long upload: the common case.
    static func randomFile() -> Body {
        Body(file: randomBytes(256 << 20))
    }

    /// An album.
    static func manyFiles() -> Body {
        let content = randomBytes(100_000)
        return Body(
            boundary: usualBoundary,
            parts: (0..<2000).lazy.map { _ in (fileHeader, content) })
    }

    /// Every other byte may begin a delimiter.
    static func lineBreaks() -> Body {
        Body(file: repeating("\r\n"))
    }

    /// A comparison from the front finds the difference late.
    static func wrongLastByte() -> Body {
        Body(file: repeating("\r\n--\(usualBoundary.dropLast())!"))
    }

    /// A comparison from both ends finds the difference late.
    static func wrongMiddleByte() -> Body {
        let half = usualBoundary.count / 2
        let wrong = usualBoundary.prefix(half) + "!" + usualBoundary.dropFirst(half + 1)
        return Body(file: repeating("\r\n--\(wrong)"))
    }

    /// Every other place has the delimiter's first and last byte where they belong, and nothing between them.
    static func rightEnds() -> Body {
        let length = usualBoundary.utf8.count + 3
        let unit =
            String(repeating: "\r", count: length) + String(repeating: String(usualBoundary.suffix(1)), count: length)
        return Body(file: repeating(unit))
    }

    /// A boundary that searches which skip by the last byte's table cannot skip over.
    static func repeatedLetter() -> Body {
        Body(boundary: String(repeating: "a", count: 70), file: repeating("a"))
    }

    /// A form with hardly anything but framing.
    static func tinyFields() -> Body {
        Body(
            boundary: usualBoundary,
            parts: (0..<500_000).lazy.map { index in
                (#"Content-Disposition: form-data; name="field\#(index)""#, Array("\(index)".utf8))
            })
    }

    /// 64 MiB of a text over and over.
    private static func repeating(_ text: String) -> [UInt8] {
        let unit = Array(text.utf8)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(64 << 20)
        while bytes.count < 64 << 20 { bytes += unit }
        return bytes
    }

    /// Bytes that look random and are the same each time (xorshift, Marsaglia 2003).
    public static func randomBytes(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            var word: UInt64 = 0x9E37_79B9_7F4A_7C15
            for index in 0..<count {
                if index % 8 == 0 {
                    word ^= word << 13
                    word ^= word >> 7
                    word ^= word << 17
                }
                buffer[index] = UInt8(truncatingIfNeeded: word >> UInt64(8 * (index % 8)))
            }
            initialized = count
        }
    }
}
