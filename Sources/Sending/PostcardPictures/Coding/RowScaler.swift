import PostcardCLibrary

/// Pixels in memory: rows of gray or RGB with 8 bits per channel, without gaps between them.
struct PicturePixels {
    let size: PictureSize
    let channels: Int
    var bytes: [UInt8]
}

/// Scales a picture down while its rows arrive from top to bottom, and rotates it upright. Only the result and the rows
/// for the filter are in memory.
///
/// The filter is Lanczos with three lobes, as in most programs. It keeps more detail than area averaging.
struct RowScaler {
    /// The source pixels and weights for each result pixel, in one direction.
    private struct Weights {
        /// The index of the first source pixel for each result pixel.
        var starts: [Int] = []
        /// The number of source pixels for each result pixel.
        var counts: [Int] = []
        /// The weights of the source pixels, with ``most`` elements for each result pixel.
        var values: [Float] = []
        var most = 0

        init(from source: Int, to target: Int) {
            let ratio = Double(source) / Double(target)
            let support = 3 * max(ratio, 1)
            most = Self.whole(2 * support) + 2
            starts.reserveCapacity(target)
            values.reserveCapacity(target * most)
            for index in 0..<target {
                let center = (Double(index) + 0.5) * ratio
                let first = max(Self.whole(center - support + 0.5), 0)
                let last = min(max(Self.whole(center + support + 0.5), first + 1), source)
                let raw = (first..<last).map { Self.lanczos((Double($0) + 0.5 - center) / max(ratio, 1)) }
                let sum = raw.reduce(0, +)
                starts.append(first)
                counts.append(raw.count)
                values += raw.map { Float($0 / sum) }
                values += repeatElement(0, count: most - raw.count)
            }
        }

        private static func whole(_ place: Double) -> Int { Int(clamping: Int64(place.rounded(.down))) }

        private static func lanczos(_ x: Double) -> Double {
            guard x != 0 else { return 1 }
            guard abs(x) < 3 else { return 0 }
            let angle = Double.pi * x
            return 3 * sin(angle) * sin(angle / 3) / (angle * angle)
        }
    }

    private let source: PictureSize
    private let channels: Int
    private let horizontal: Weights
    private let vertical: Weights
    private let isCopy: Bool
    private let target: PictureSize
    private let steps: (first: Int, pixel: Int, row: Int)

    /// A ring buffer of the latest source rows. Row `y` is at `y % ringRows`.
    private var ring: [UInt8]
    private let ringRows: Int
    /// A row after vertical scaling. It has extra space at its end, because four numbers are read at a time.
    private var blended: [Float]
    private var rowsReceived = 0
    private var rowsWritten = 0
    private(set) var pixels: PicturePixels

    /// Prepares to scale a picture.
    ///
    /// - Parameters:
    ///   - source: The size of the source picture.
    ///   - channels: The number of channels, 1 or 3.
    ///   - target: The size of the result before its rotation, not larger than `source`.
    ///   - orientation: The orientation of the source picture.
    init(from source: PictureSize, channels: Int, to target: PictureSize, orientation: PictureOrientation) {
        self.source = source
        self.channels = channels
        self.target = target
        isCopy = source == target
        horizontal = Weights(from: source.width, to: target.width)
        vertical = Weights(from: source.height, to: target.height)
        ringRows = isCopy ? 0 : min(vertical.most, source.height)
        ring = Array(repeating: 0, count: ringRows * source.width * channels)
        blended = Array(repeating: 0, count: isCopy ? 0 : source.width * channels + 4)
        steps = orientation.steps(in: target)
        let size = orientation.size(of: target)
        pixels = PicturePixels(
            size: size, channels: channels, bytes: Array(repeating: 0, count: size.width * size.height * channels))
    }

    /// Whether all rows were received.
    var isComplete: Bool { rowsReceived == source.height }

    /// Receives the next row.
    mutating func receive(_ row: UnsafePointer<UInt8>) {
        guard rowsReceived < source.height else { return }
        if isCopy {
            place(row, at: rowsReceived)
            rowsReceived += 1
            return
        }
        let stride = source.width * channels
        ring.withUnsafeMutableBufferPointer { ring in
            guard let start = ring.baseAddress else { return }
            (start + rowsReceived % ringRows * stride).update(from: row, count: stride)
        }
        rowsReceived += 1
        while rowsWritten < target.height,
            vertical.starts[rowsWritten] + vertical.counts[rowsWritten] <= rowsReceived
        {
            blend()
            writeRow()
            rowsWritten += 1
        }
    }

    /// Blends the source rows for one result row into a single row.
    private mutating func blend() {
        let stride = source.width * channels
        let start = vertical.starts[rowsWritten]
        let count = vertical.counts[rowsWritten]
        let weights = rowsWritten * vertical.most
        blended.withUnsafeMutableBufferPointer { blended in
            ring.withUnsafeBufferPointer { ring in
                vertical.values.withUnsafeBufferPointer { values in
                    guard let out = blended.baseAddress, let rows = ring.baseAddress else { return }
                    func row(_ tap: Int) -> UnsafePointer<UInt8> { rows + (start + tap) % ringRows * stride }
                    var tap = 0
                    // Four rows are blended at a time, to read and write the result less often.
                    while tap < count {
                        let a = row(tap), b = row(min(tap + 1, count - 1))
                        let c = row(min(tap + 2, count - 1)), d = row(min(tap + 3, count - 1))
                        let wa = values[weights + tap]
                        let wb = tap + 1 < count ? values[weights + tap + 1] : 0
                        let wc = tap + 2 < count ? values[weights + tap + 2] : 0
                        let wd = tap + 3 < count ? values[weights + tap + 3] : 0
                        if tap == 0 {
                            for x in 0..<stride {
                                out[x] = wa * Float(a[x]) + wb * Float(b[x]) + wc * Float(c[x]) + wd * Float(d[x])
                            }
                        } else {
                            for x in 0..<stride {
                                out[x] += wa * Float(a[x]) + wb * Float(b[x]) + wc * Float(c[x]) + wd * Float(d[x])
                            }
                        }
                        tap += 4
                    }
                }
            }
        }
    }

    /// Scales the blended row horizontally, and writes it into the rotated result.
    private mutating func writeRow() {
        let (channels, steps, width, row) = (channels, steps, target.width, rowsWritten)
        let horizontal = horizontal
        blended.withUnsafeBufferPointer { blended in
            pixels.bytes.withUnsafeMutableBufferPointer { bytes in
                horizontal.values.withUnsafeBufferPointer { values in
                    guard let input = blended.baseAddress, let output = bytes.baseAddress else { return }
                    var place = (steps.first + row * steps.row) * channels
                    for x in 0..<width {
                        let weights = x * horizontal.most
                        let first = input + horizontal.starts[x] * channels
                        if channels == 3 {
                            var sum = SIMD4<Float>(repeating: 0.5)
                            for tap in 0..<horizontal.counts[x] {
                                let pixel = UnsafeRawPointer(first + 3 * tap).loadUnaligned(as: SIMD4<Float>.self)
                                sum += pixel * values[weights + tap]
                            }
                            sum.clamp(lowerBound: SIMD4(repeating: 0), upperBound: SIMD4(repeating: 255))
                            output[place] = UInt8(sum.x)
                            output[place + 1] = UInt8(sum.y)
                            output[place + 2] = UInt8(sum.z)
                        } else {
                            var sum: Float = 0.5
                            for tap in 0..<horizontal.counts[x] { sum += first[tap] * values[weights + tap] }
                            output[place] = UInt8(min(max(sum, 0), 255))
                        }
                        place += steps.pixel * channels
                    }
                }
            }
        }
    }

    /// Writes a source row into the result if the picture is not scaled.
    private mutating func place(_ row: UnsafePointer<UInt8>, at y: Int) {
        let (channels, steps, width) = (channels, steps, target.width)
        pixels.bytes.withUnsafeMutableBufferPointer { bytes in
            guard let output = bytes.baseAddress else { return }
            var place = (steps.first + y * steps.row) * channels
            if steps.pixel == 1 {
                (output + place).update(from: row, count: width * channels)
                return
            }
            for x in 0..<width {
                for channel in 0..<channels { output[place + channel] = row[x * channels + channel] }
                place += steps.pixel * channels
            }
        }
    }
}

extension PicturePixels {
    /// A copy of the picture, scaled down to a longer edge.
    func scaled(toEdge edge: Int) -> PicturePixels {
        let target = size.scaled(toEdge: edge)
        guard target != size else { return self }
        var scaler = RowScaler(from: size, channels: channels, to: target, orientation: .upright)
        bytes.withUnsafeBufferPointer { bytes in
            guard let start = bytes.baseAddress else { return }
            for y in 0..<size.height { scaler.receive(start + y * size.width * channels) }
        }
        return scaler.pixels
    }
}
