import Foundation
import PostcardPictureFormats
import PostcardTestSupport
import Testing

@testable import PostcardPictures

@Suite struct RowScalerTests {
    /// The scaled picture as the definition of the filter has it, in doubles.
    private func expected(_ samples: [UInt8], _ width: Int, _ height: Int, _ channels: Int, to size: PictureSize)
        -> [Double]
    {
        func weights(_ source: Int, _ target: Int) -> [[(Int, Double)]] {
            (0..<target).map { index in
                let ratio = Double(source) / Double(target)
                let center = (Double(index) + 0.5) * ratio
                let raw = (0..<source).map { place -> (Int, Double) in
                    let x = (Double(place) + 0.5 - center) / ratio
                    if x == 0 { return (place, 1) }
                    if abs(x) >= 3 { return (place, 0) }
                    return (place, 3 * sin(.pi * x) * sin(.pi * x / 3) / (.pi * x * .pi * x))
                }
                let sum = raw.reduce(0) { $0 + $1.1 }
                return raw.map { ($0.0, $0.1 / sum) }
            }
        }
        let (across, down) = (weights(width, size.width), weights(height, size.height))
        return (0..<size.height).flatMap { y in
            (0..<size.width).flatMap { x in
                (0..<channels).map { channel in
                    let sum = down[y].reduce(0) { sum, row in
                        sum + row.1
                            * across[x].reduce(0) {
                                $0 + $1.1 * Double(samples[(row.0 * width + $1.0) * channels + channel])
                            }
                    }
                    return min(max(sum, 0), 255)
                }
            }
        }
    }

    @Test(arguments: [
        (31, 17, 3, 12), (31, 17, 1, 12), (40, 40, 3, 39), (5, 64, 3, 7), (64, 1, 3, 9), (1, 9, 1, 4), (8, 8, 3, 8),
        (90, 30, 3, 1),
    ])
    func `scaling is Lanczos`(width: Int, height: Int, channels: Int, edge: Int) {
        var random = SeededGenerator(seed: UInt64(width * height))
        let samples = (0..<(width * height * channels)).map { _ in UInt8.random(in: 0...255, using: &random) }
        let pixels = PicturePixels(size: .init(width: width, height: height), channels: channels, bytes: samples)
        let scaled = pixels.scaled(toEdge: edge)
        let expected = expected(samples, width, height, channels, to: scaled.size)
        #expect(scaled.bytes.count == expected.count)
        #expect(zip(scaled.bytes, expected).allSatisfy { abs(Double($0) - $1) <= 0.51 })
    }

    @Test(arguments: PictureOrientation.allCases)
    func `turning and scaling at once is the same as one after the other`(orientation: PictureOrientation) {
        let (width, height) = (23, 14)
        var random = SeededGenerator(seed: 9)
        let samples = (0..<(width * height * 3)).map { _ in UInt8.random(in: 0...255, using: &random) }
        let stored = PictureSize(width: width, height: height)
        for edge in [23, 11] {
            let target = stored.scaled(toEdge: edge)
            let upright = PicturePixels(size: stored, channels: 3, bytes: samples).scaled(toEdge: edge).bytes
            var scaler = RowScaler(from: stored, channels: 3, to: target, orientation: orientation)
            for y in 0..<height {
                #expect(!scaler.isComplete)
                samples.withUnsafeBufferPointer {
                    if let start = $0.baseAddress { scaler.receive(start + y * width * 3) }
                }
            }
            #expect(scaler.isComplete)
            let steps = orientation.steps(in: target)
            var expected = upright
            for index in 0..<(target.width * target.height) {
                let place = steps.first + index % target.width * steps.pixel + index / target.width * steps.row
                for channel in 0..<3 { expected[place * 3 + channel] = upright[index * 3 + channel] }
            }
            #expect(scaler.pixels.bytes == expected)
            #expect(scaler.pixels.size == orientation.size(of: target))
        }
    }
}
