/// Finds a few bytes in many.
///
/// Sixteen places are looked at together for the first and the last byte, so that a body of any kind is searched
/// faster than it is hashed.
struct ByteSearch: Sendable {
    let needle: [UInt8]

    init(_ needle: some Sequence<UInt8>) {
        self.needle = Array(needle)
    }

    /// Where the bytes first stand whole between two indices.
    func firstIndex(in bytes: [UInt8], from start: Int, end: Int) -> Int? {
        guard let first = needle.first, let last = needle.last, end - start >= needle.count else { return nil }
        return bytes.withUnsafeBytes { all in
            guard let base = all.baseAddress else { return nil }
            let beyond = end - needle.count + 1
            let firsts = SIMD16<UInt8>(repeating: first)
            let lasts = SIMD16<UInt8>(repeating: last)
            var index = start
            while index + 16 <= beyond {
                let isFirst = (base + index).loadUnaligned(as: SIMD16<UInt8>.self) .== firsts
                let isLast = (base + index + needle.count - 1).loadUnaligned(as: SIMD16<UInt8>.self) .== lasts
                let fits = unsafeBitCast(isFirst .& isLast, to: SIMD2<UInt64>.self)
                if fits.x | fits.y != 0, let found = place(in: all, from: index, beyond: index + 16) { return found }
                index += 16
            }
            return place(in: all, from: index, beyond: beyond)
        }
    }

    private func place(in bytes: UnsafeRawBufferPointer, from start: Int, beyond: Int) -> Int? {
        var index = start
        while index < beyond {
            var length = 0
            while length < needle.count, bytes[index + length] == needle[length] { length += 1 }
            if length == needle.count { return index }
            index += 1
        }
        return nil
    }
}
