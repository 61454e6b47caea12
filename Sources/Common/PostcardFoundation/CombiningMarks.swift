/// The limit on combining marks in untrusted text.
///
/// Swift compares and hashes strings by their normal form. Sorting the marks of a letter takes time by the square of
/// their number, so a field with 40,000 marks on a letter would occupy a processor for seconds. Real text has at most
/// 30 marks in a row, the limit of the Stream-Safe Text Format (UAX #15 §13).
package enum CombiningMarks {
    package static let maximumInARow = 30

    /// The character U+034F, which ends a row of marks without a change to how the text looks.
    package static let separator: [UInt8] = [0xCD, 0x8F]

    /// The offset of the first mark above ``maximumInARow``; `nil` if there is none.
    package static func firstExcess(in bytes: some Collection<UInt8>) -> Int? {
        excesses(in: bytes, maximumCount: 1).first
    }

    /// The offsets at which to insert a ``separator`` to make the text stream-safe.
    package static func excesses(in bytes: some Collection<UInt8>, maximumCount: Int = .max) -> [Int] {
        bytes.withContiguousStorageIfAvailable { excesses(in: $0, maximumCount: maximumCount) }
            ?? Array(bytes).withUnsafeBufferPointer { excesses(in: $0, maximumCount: maximumCount) }
    }

    private static func excesses(in bytes: UnsafeBufferPointer<UInt8>, maximumCount: Int) -> [Int] {
        let raw = UnsafeRawBufferPointer(bytes)
        var found: [Int] = []
        var start = 0
        var index = 0
        while index < bytes.count, found.count < maximumCount {
            if index + 8 <= bytes.count,
                raw.loadUnaligned(fromByteOffset: index, as: UInt64.self) & 0x8080_8080_8080_8080 == 0
            {
                index += 8
                start = index
            } else if !mayBelongToMark(bytes[index]) {
                index += 1
                start = index
            } else {
                index += 1
                guard index - start > shortestExcess else { continue }
                while index < bytes.count, mayBelongToMark(bytes[index]) { index += 1 }
                count(UnsafeBufferPointer(rebasing: bytes[start..<index]), at: start, &found, maximumCount)
                start = index
            }
        }
        return found
    }

    /// The minimum size of ``maximumInARow`` marks, in bytes: two for each mark. Only longer text can have an excess.
    private static let shortestExcess = 2 * maximumInARow

    /// Whether a byte may be part of a mark. `false` for ASCII bytes, and for the first bytes of most Chinese and
    /// Korean characters.
    private static func mayBelongToMark(_ byte: UInt8) -> Bool {
        switch byte {
        case 0..<0x80, 0xE4...0xE9, 0xEB, 0xEC: false
        default: true
        }
    }

    private static func count(
        _ bytes: UnsafeBufferPointer<UInt8>, at start: Int, _ found: inout [Int], _ maximumCount: Int
    ) {
        var index = 0
        var marks = 0
        while index < bytes.count, found.count < maximumCount {
            let (length, isMark) = scalar(in: bytes, at: index)
            if !isMark {
                marks = 0
            } else if marks == maximumInARow {
                found.append(start + index)
                marks = 1
            } else {
                marks += 1
            }
            index += length
        }
    }

    private static func scalar(in bytes: UnsafeBufferPointer<UInt8>, at index: Int) -> (length: Int, isMark: Bool) {
        // The most common marks, U+0300 to U+033F, need no lookup.
        if bytes[index] == 0xCC, index + 1 < bytes.count, bytes[index + 1] & 0xC0 == 0x80 { return (2, true) }
        var iterator = bytes[index...].makeIterator()
        var parser = Unicode.UTF8.ForwardParser()
        switch parser.parseScalar(from: &iterator) {
        case .emptyInput: return (1, false)
        // Invalid bytes become U+FFFD, which is no mark.
        case .error(let length): return (length, false)
        case .valid(let encoded):
            let scalar = Unicode.UTF8.decode(encoded)
            let isMark = scalar.value >= 0x300 && scalar.properties.canonicalCombiningClass.rawValue != 0
            return (encoded.count, isMark)
        }
    }
}

extension String {
    /// Decodes untrusted bytes, with U+FFFD for bytes that are not UTF-8 and U+034F after every 30 combining marks in a
    /// row (UAX #15 §13). The text can be compared, hashed and searched in linear time.
    package init(streamSafe bytes: some Collection<UInt8>) {
        let excesses = CombiningMarks.excesses(in: bytes)
        guard !excesses.isEmpty else {
            self.init(decoding: bytes, as: UTF8.self)
            return
        }
        var separated: [UInt8] = []
        var start = bytes.startIndex
        var offset = 0
        for excess in excesses {
            let end = bytes.index(start, offsetBy: excess - offset)
            separated += bytes[start..<end]
            separated += CombiningMarks.separator
            (start, offset) = (end, excess)
        }
        self.init(decoding: separated + bytes[start...], as: UTF8.self)
    }

    /// The text with U+034F after every 30 combining marks in a row (UAX #15 §13), which makes untrusted text safe to
    /// compare, hash and search.
    package var streamSafe: String {
        CombiningMarks.firstExcess(in: utf8) == nil ? self : String(streamSafe: utf8)
    }
}
