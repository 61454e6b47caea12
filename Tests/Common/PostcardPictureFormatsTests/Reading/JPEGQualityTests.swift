import Testing

@testable import PostcardPictureFormats

@Suite struct JPEGQualityTests {
    private static func segment(_ marker: UInt8, _ content: [UInt8]) -> [UInt8] {
        [0xFF, marker, UInt8((content.count + 2) >> 8), UInt8((content.count + 2) & 0xFF)] + content
    }

    /// A table as it is written in a file.
    private static func written(_ table: [Int], number: UInt8, isWide: Bool = false) -> [UInt8] {
        let values = JPEGQuality.zigZag.map { table[$0] }
        let bytes = isWide ? values.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] } : values.map { UInt8($0) }
        return [isWide ? number | 0x10 : number] + bytes
    }

    private static func frame(_ tables: [UInt8], marker: UInt8 = 0xC0) -> [UInt8] {
        segment(
            marker,
            [8, 0, 8, 0, 8, UInt8(tables.count)]
                + tables.enumerated().flatMap { [UInt8($0.offset + 1), 0x11, $0.element] })
    }

    private static let scan: [UInt8] = [0xFF, 0xDA, 0, 2]

    @Test(arguments: 1...100) func `each quality of libjpeg is found, in grey and in color`(quality: Int) {
        let tables = JPEGQuality.tables(quality: quality)
        #expect(JPEGQuality.estimate(tables.luminance, nil) == quality)
        #expect(JPEGQuality.estimate(tables.luminance, tables.chrominance) == quality)
    }

    @Test func `libjpeg's tables are those of the standard at 50, doubled at 25 and nothing but ones at 100`() {
        let half = JPEGQuality.tables(quality: 50)
        #expect(half.luminance.prefix(8).elementsEqual([16, 11, 10, 16, 24, 40, 51, 61]))
        #expect(half.luminance.reduce(0, +) == 3688 && half.chrominance.reduce(0, +) == 5505)
        #expect(JPEGQuality.tables(quality: 25).luminance.prefix(3).elementsEqual([32, 22, 20]))
        #expect(JPEGQuality.tables(quality: 100).luminance == [Int](repeating: 1, count: 64))
        // Rounded to the nearest, and not more than a byte holds.
        #expect(JPEGQuality.tables(quality: 75).luminance.prefix(3).elementsEqual([8, 6, 5]))
        #expect(JPEGQuality.tables(quality: 1).luminance.allSatisfy { $0 == 255 })
    }

    @Test func `diagonals are read up and down`() {
        #expect(JPEGQuality.zigZag.prefix(10).elementsEqual([0, 1, 8, 16, 9, 2, 3, 10, 17, 24]))
        #expect(JPEGQuality.zigZag.suffix(3).elementsEqual([55, 62, 63]))
        #expect(Set(JPEGQuality.zigZag) == Set(0..<64))
    }

    @Test(arguments: [
        (70, [0, 1, 1] as [UInt8], false, 0xC0 as UInt8), (82, [0, 1, 1], true, 0xC2), (50, [0], false, 0xC1),
        // A table for all, and one for each.
        (61, [0, 0, 0], false, 0xC0), (90, [2, 3, 3], false, 0xC2),
    ])
    func `tables are found by what the frame says`(quality: Int, components: [UInt8], isWide: Bool, marker: UInt8) {
        let tables = JPEGQuality.tables(quality: quality)
        let first = components[0]
        let other = JPEGQuality.tables(quality: 5).luminance
        let file =
            [0xFF, 0xD8] + Self.segment(0xE0, Array("JFIF\0".utf8))
            + Self.segment(0xDB, Self.written(other, number: first))
            + Self.segment(
                0xDB,
                Self.written(tables.luminance, number: first, isWide: isWide)
                    + Self.written(tables.chrominance, number: first + 1))
            + [0xFF] + Self.frame(components, marker: marker) + Self.scan + [1, 2, 3]
        #expect(JPEGQuality.estimate(of: file) == quality)
    }

    @Test func `coarser steps are a lower quality, whatever their shape`() {
        for shape in [[Int](repeating: 1, count: 64), (0..<64).map { 1 + $0 / 8 + $0 % 8 }, (0..<64).map { 64 - $0 }] {
            let found = (1...20).map { factor in JPEGQuality.estimate(shape.map { $0 * factor }, nil) }
            #expect(zip(found, found.dropFirst()).allSatisfy { $0 >= $1 }, "\(found)")
            #expect(Set(found).count > 5 && found.allSatisfy { (1...100).contains($0) })
        }
    }

    @Test func `what has no tables has no quality`() {
        let table = Self.segment(0xDB, Self.written(JPEGQuality.tables(quality: 80).luminance, number: 0))
        let files: [[UInt8]] = [
            [], [0xFF], [0xFF, 0xD8], Array("GIF89a".utf8), [0xFF, 0xD8] + table, [0xFF, 0xD8] + Self.frame([0]),
            [0xFF, 0xD8] + table + Self.frame([1]) + Self.scan, [0xFF, 0xD8] + table.dropLast(3),
            [0xFF, 0xD8] + table + Self.frame([], marker: 0xC0), [0xFF, 0xD8] + table + Self.frame([0], marker: 0xC3),
            [0xFF, 0xD8, 0xFF, 0xDB, 0, 0], [0xFF, 0xD8, 0xFF, 0xDB, 0, 3, 0],
        ]
        for file in files { #expect(JPEGQuality.estimate(of: file) == nil, "\(file)") }
    }
}
