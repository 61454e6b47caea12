/// Estimates the quality of a JPEG from its quantization tables, on libjpeg's scale from 1 to 100.
///
/// Each encoder has its own scale, and the file does not state its quality. For each quality, libjpeg multiplies the
/// example tables of the standard (ITU-T T.81 Annex K.1) by a factor.
package enum JPEGQuality {
    /// The estimated quality of a JPEG; `nil` if the file is not a JPEG, lacks a quantization table for its first
    /// component, or is lossless. The bytes before the pixels are enough.
    package static func estimate(of jpeg: some RandomAccessCollection<UInt8>) -> Int? {
        var tables: [UInt8: [Int]] = [:]
        var components: [UInt8] = []
        guard jpeg.starts(with: [0xFF, 0xD8]) else { return nil }
        var offset: Int64 = 2
        walk: while true {
            let header = Array(jpeg.dropFirst(Int(clamping: offset)).prefix(16))
            // The file may end before its pixels.
            if header.isEmpty { break }
            guard case .unit(let unit) = PictureContainer.jpeg.unit(header[...], at: offset, end: Int64(jpeg.count))
            else { return nil }
            if unit.isLast { break }
            let content = jpeg.dropFirst(Int(clamping: unit.content.lowerBound)).prefix(unit.content.count)
            switch unit.kind {
            case .segment(0xDA): break walk
            case .segment(0xDB): read(content, into: &tables)
            // A baseline, extended or progressive frame has quantized pixels.
            case .segment(0xC0...0xC2), .segment(0xC9), .segment(0xCA):
                components = stride(from: 8, to: content.count, by: 3).map { at($0, content) }
            default: break
            }
            offset = unit.next
        }
        guard let first = components.first, let luminance = tables[first] else { return nil }
        let second = components.dropFirst().first
        return estimate(luminance, second == first ? nil : second.flatMap { tables[$0] })
    }

    private static func at(_ index: Int, _ bytes: some Collection<UInt8>) -> UInt8 { bytes.dropFirst(index).first ?? 0 }

    /// Parses quantization tables (ITU-T T.81 §B.2.4.1): a precision, a number, and 64 values of 8 or 16 bits.
    private static func read(_ content: some Collection<UInt8>, into tables: inout [UInt8: [Int]]) {
        var rest = Array(content)[...]
        while let head = rest.first {
            let size = head >> 4 == 0 ? 1 : 2
            let values = rest.dropFirst().prefix(64 * size)
            guard values.count == 64 * size else { return }
            var table = [Int](repeating: 1, count: 64)
            for (index, place) in zigZag.enumerated() {
                let start = values.startIndex + size * index
                table[place] = Int(clamping: values[start..<(start + size)].bigEndian)
            }
            tables[head & 0xF] = table
            rest = rest.dropFirst(1 + 64 * size)
        }
    }

    // MARK: - libjpeg's scale

    /// The quality at which libjpeg's tables are as coarse as the given ones.
    ///
    /// Makes two estimates: one from the sum of all values, and one from the four values that ImageMagick samples. They
    /// agree for libjpeg's own tables. For other tables, returns the lower estimate.
    static func estimate(_ luminance: [Int], _ chrominance: [Int]?) -> Int {
        let found = measures(luminance, chrominance)
        let index = scale.firstIndex { both in
            let known = chrominance == nil ? both.grey : both.color
            return found.sum >= known.sum || found.sample >= known.sample
        }
        return index.map { $0 + 1 } ?? 100
    }

    private static func measures(_ luminance: [Int], _ chrominance: [Int]?) -> (sum: Int, sample: Int) {
        let sum = luminance.reduce(0, +) + (chrominance?.reduce(0, +) ?? 0)
        let sample = luminance[2] + luminance[53] + (chrominance.map { $0[0] + $0[63] } ?? 0)
        return (sum, sample)
    }

    /// The sums of the values in libjpeg's tables at each quality from 1 to 100, for gray and color pictures.
    private static let scale = (1...100).map {
        quality -> (grey: (sum: Int, sample: Int), color: (sum: Int, sample: Int)) in
        let (luminance, chrominance) = tables(quality: quality)
        return (grey: measures(luminance, nil), color: measures(luminance, chrominance))
    }

    /// libjpeg's tables for a quality from 1 to 100, row by row.
    package static func tables(quality: Int) -> (luminance: [Int], chrominance: [Int]) {
        let percent = quality < 50 ? 5000 / quality : 200 - 2 * quality
        func scaled(_ table: [Int]) -> [Int] { table.map { min(max(($0 * percent + 50) / 100, 1), 255) } }
        return (scaled(luminance), scaled(chrominance))
    }

    /// The order of the values in a file: along the diagonals, up and down (ITU-T T.81 §A.3.6).
    package static let zigZag: [Int] = (0..<15).flatMap { diagonal -> [Int] in
        let rows = max(0, diagonal - 7)...min(diagonal, 7)
        let places = rows.map { 8 * $0 + diagonal - $0 }
        return diagonal % 2 == 0 ? places.reversed() : places
    }

    /// The example table for luminance: ITU-T T.81 table K.1.
    private static let luminance = [
        16, 11, 10, 16, 24, 40, 51, 61,
        12, 12, 14, 19, 26, 58, 60, 55,
        14, 13, 16, 24, 40, 57, 69, 56,
        14, 17, 22, 29, 51, 87, 80, 62,
        18, 22, 37, 56, 68, 109, 103, 77,
        24, 35, 55, 64, 81, 104, 113, 92,
        49, 64, 78, 87, 103, 121, 120, 101,
        72, 92, 95, 98, 112, 100, 103, 99,
    ]

    /// The example table for chrominance: ITU-T T.81 table K.2.
    private static let chrominance = [
        17, 18, 24, 47, 99, 99, 99, 99,
        18, 21, 26, 66, 99, 99, 99, 99,
        24, 26, 56, 99, 99, 99, 99, 99,
        47, 66, 99, 99, 99, 99, 99, 99,
        99, 99, 99, 99, 99, 99, 99, 99,
        99, 99, 99, 99, 99, 99, 99, 99,
        99, 99, 99, 99, 99, 99, 99, 99,
        99, 99, 99, 99, 99, 99, 99, 99,
    ]
}
