/// A JPEG of one color that every decoder reads, of few bytes for many pixels: a block is two bits, and no differences.
package enum FlatJPEG {
    /// - Parameters:
    ///   - luminance: The quantization table in the order of the file, along diagonals. Defaults to ones.
    ///   - chrominance: That of the colors; `nil` for a grey picture. Defaults to ones.
    package static func bytes(
        width: Int, height: Int, luminance: [Int] = ones, chrominance: [Int]? = ones
    ) -> [UInt8] {
        let tables = [luminance] + (chrominance.map { [$0] } ?? [])
        let quantization = tables.enumerated().flatMap { index, table in
            // In 16 bits where a value needs them.
            let isWide = table.contains { $0 > 255 }
            return [UInt8(isWide ? 16 + index : index)] + table.flatMap { big($0, isWide ? 2 : 1) }
        }
        let components: [[UInt8]] =
            chrominance == nil ? [[1, 0x11, 0]] : [[1, 0x22, 0], [2, 0x11, 1], [3, 0x11, 1]]
        let frame = [8] + big(height, 2) + big(width, 2) + [UInt8(components.count)] + components.flatMap(\.self)
        // One code of one bit: no difference, and the end of the block.
        let code = [1] + [UInt8](repeating: 0, count: 16)
        let selectors: [UInt8] = components.flatMap { [$0[0], 0] as [UInt8] }
        let scan = [UInt8(components.count)] + selectors + [0, 63, 0]
        let edge = chrominance == nil ? 8 : 16
        let units = ((width + edge - 1) / edge) * ((height + edge - 1) / edge)
        let pixels = [UInt8](repeating: 0, count: units * (chrominance == nil ? 1 : 6) / 4 + 1)
        return [0xFF, 0xD8] + segment(0xDB, quantization) + segment(0xC0, frame) + segment(0xC4, [0] + code)
            + segment(0xC4, [0x10] + code) + segment(0xDA, scan) + pixels + [0xFF, 0xD9]
    }

    package static let ones = [Int](repeating: 1, count: 64)

    private static func segment(_ marker: UInt8, _ content: [UInt8]) -> [UInt8] {
        [0xFF, marker] + big(content.count + 2, 2) + content
    }

    private static func big(_ number: Int, _ count: Int) -> [UInt8] {
        (0..<count).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
}
