import PostcardCLibrary

/// Searches for the largest edge, and then for the best quality, at which the JPEG of a picture fits its maximum size.
///
/// The picture is as large as possible at quality 50, and then as good as possible. Each try costs an encoding. So the
/// sizes of encodings that were not tried are predicted from the tries.
struct PictureFit: Equatable {
    /// The edge and the quality with which to encode the picture.
    struct Encoding: Hashable {
        /// The length of the longer edge, in pixels.
        let edge: Int
        /// The quality on the scale of libjpeg, from 50 to 82, according to the result's quantization tables.
        let quality: Int
    }

    /// An encoding that was tried, and its size in bytes.
    struct Try: Equatable {
        let encoding: Encoding
        let bytes: Int64
    }

    /// The next step of the search.
    enum Step: Equatable {
        case encode(Encoding)
        /// The search is finished. The value is the best encoding that was tried.
        case finished(Encoding)
        /// The search has failed: no encoding fits.
        case impossible
    }

    static let mostEncodings = 6
    static let qualities = 50...82
    static let smallestEdge = 640

    /// The first edge to try: the picture's own longer edge or the maximum edge, whichever is shorter.
    let edge: Int
    let maximumBytes: Int64
    /// The number of bytes that do not depend on the pixels: the headers and the color profile.
    var fixedBytes: Int64 = 600
    private(set) var tries: [Try] = []

    init(edge: Int, maximumBytes: Int64) {
        self.edge = edge
        self.maximumBytes = maximumBytes
    }

    /// The edges to try, longest first: ``edge``, and then the usual lengths in photography.
    var edges: [Int] {
        var usual: [Int] = []
        var base = [640, 800, 1024]
        while let last = base.last, last < edge * 2 {
            usual += base
            base = base.map { $0 * 2 }
        }
        // A step of only a few pixels would save almost no bytes.
        return [edge] + usual.filter { $0 < edge && ($0 * 20 < edge * 19 || $0 == Self.smallestEdge) }.reversed()
    }

    /// Records the size of an encoding.
    mutating func record(_ bytes: Int64, for encoding: Encoding) {
        tries.append(Try(encoding: encoding, bytes: bytes))
    }

    /// The best encoding tried so far that fits the maximum size.
    var best: Try? {
        tries.filter { $0.bytes <= maximumBytes }.max {
            ($0.encoding.edge, $0.encoding.quality) < ($1.encoding.edge, $1.encoding.quality)
        }
    }

    /// The smallest encoding tried so far.
    var smallest: Try? { tries.min { $0.bytes < $1.bytes } }

    /// The next step of the search.
    var next: Step {
        guard !tries.isEmpty else { return .encode(Encoding(edge: edge, quality: Self.qualities.upperBound)) }
        let end: Step = best.map { .finished($0.encoding) } ?? .impossible
        let left = Self.mostEncodings - tries.count
        guard left > 0 else { return end }

        for edge in edges {
            if let best, edge <= best.encoding.edge {
                guard let quality = betterQuality(than: best) else { return end }
                return .encode(Encoding(edge: edge, quality: quality))
            }
            if let quality = quality(for: edge, left: left) { return .encode(Encoding(edge: edge, quality: quality)) }
        }
        let last = Encoding(edge: edges.last ?? edge, quality: Self.qualities.lowerBound)
        return best != nil || tries.contains { $0.encoding == last } ? end : .encode(last)
    }

    /// The quality to try at an edge where no encoding has fitted so far; `nil` if none is expected to fit.
    private func quality(for edge: Int, left: Int) -> Int? {
        let lowest = Self.qualities.lowerBound
        let tooMuch = tries.filter { $0.encoding.edge == edge }.map(\.encoding.quality).min()
        guard tooMuch.map({ $0 > lowest }) ?? true else { return nil }
        // If no encoding has fitted and few tries are left, a picture that fits matters more than using every byte.
        let isLate = best == nil && left <= 2
        if best == nil, left == 1 { return nil }
        let goal = Double(maximumBytes) * (isLate ? 0.8 : 0.965)
        let quality = predictedQuality(edge: edge, bytes: goal)
        let most = (tooMuch ?? Self.qualities.upperBound + 1) - 1
        if quality >= Double(lowest) { return min(max(Self.whole(quality), lowest), most) }
        // The predicted size may be slightly too large, so the lowest quality may still fit.
        let isNear = predictedBytes(Encoding(edge: edge, quality: lowest)) <= Double(maximumBytes) * 1.06
        return isNear && !isLate ? lowest : nil
    }

    /// A quality to try between the best one that fits and the lowest one that does not fit; `nil` if another try is
    /// not worth it.
    private func betterQuality(than best: Try) -> Int? {
        let quality = best.encoding.quality
        let tooMuch = tries.filter { $0.encoding.edge == best.encoding.edge && $0.encoding.quality > quality }
        let limit = tooMuch.map(\.encoding.quality).min() ?? Self.qualities.upperBound + 1
        guard limit - quality > 1, Double(best.bytes) < Double(maximumBytes) * 0.94 else { return nil }
        let predicted = predictedQuality(edge: best.encoding.edge, bytes: Double(maximumBytes) * 0.985)
        return min(max(Self.whole(predicted), quality + 1), limit - 1)
    }
}

// Prediction: the number of bytes that depend on the pixels grows as a power of the edge, and falls as a power of the
// quantization step. Each power is measured from two encodings that differ only in that value.
extension PictureFit {
    /// The quantization step at a quality, in percent of the step at quality 50, as libjpeg computes it.
    private static func step(_ quality: Double) -> Double { quality < 50 ? 5000 / quality : 200 - 2 * quality }

    /// Rounds a predicted quality, which may be far out of range.
    private static func whole(_ quality: Double) -> Int {
        Int(exactly: min(max(quality, 0), 100).rounded(.down)) ?? 0
    }

    private func size(_ tried: Try) -> Double { log(Double(max(tried.bytes - fixedBytes, 1))) }

    /// The tried encoding that is nearest to an edge and a quantization step.
    private func nearest(edge: Int, step: Double) -> Try? {
        tries.min { distance($0, edge: edge, step: step) < distance($1, edge: edge, step: step) }
    }

    private func distance(_ tried: Try, edge: Int, step: Double) -> Double {
        2 * abs(log(Double(tried.encoding.edge) / Double(edge)))
            + abs(log(Self.step(Double(tried.encoding.quality)) / step))
    }

    /// The exponent in the prediction for how the size falls with the quantization step.
    private func stepPower(near edge: Int) -> Double {
        for edge in [edge] + edges {
            let same = tries.filter { $0.encoding.edge == edge }.sorted { $0.encoding.quality < $1.encoding.quality }
            guard let low = same.first, let high = same.last, low.encoding.quality < high.encoding.quality else {
                continue
            }
            let steps = log(Self.step(Double(low.encoding.quality)) / Self.step(Double(high.encoding.quality)))
            return min(max((size(high) - size(low)) / steps, 0.2), 1.6)
        }
        return 0.68
    }

    /// The exponent in the prediction for how the size grows with the edge.
    private func edgePower(_ stepPower: Double) -> Double {
        guard let long = tries.max(by: { $0.encoding.edge < $1.encoding.edge }),
            let short = tries.min(by: { $0.encoding.edge < $1.encoding.edge }),
            long.encoding.edge > short.encoding.edge
        else { return 1.75 }
        let steps = log(Self.step(Double(long.encoding.quality)) / Self.step(Double(short.encoding.quality)))
        let difference = size(long) - size(short) + stepPower * steps
        return min(max(difference / log(Double(long.encoding.edge) / Double(short.encoding.edge)), 0.8), 2.2)
    }

    /// The predicted size of an encoding, in bytes.
    func predictedBytes(_ encoding: Encoding) -> Double {
        let step = Self.step(Double(encoding.quality))
        guard let nearest = nearest(edge: encoding.edge, step: step) else { return 0 }
        let stepPower = stepPower(near: encoding.edge)
        let grown = edgePower(stepPower) * log(Double(encoding.edge) / Double(nearest.encoding.edge))
        let coarser = stepPower * log(step / Self.step(Double(nearest.encoding.quality)))
        return Double(fixedBytes) + exp(size(nearest) + grown - coarser)
    }

    /// The quality at which the picture is predicted to have a number of bytes. The quality may be out of range.
    private func predictedQuality(edge: Int, bytes: Double) -> Double {
        let start = Encoding(edge: edge, quality: tries.last?.encoding.quality ?? Self.qualities.upperBound)
        var step = Self.step(Double(start.quality))
        let goal = log(max(bytes - Double(fixedBytes), 1))
        // The nearest encoding depends on the step, which is only guessed at first. So the prediction is made twice.
        for _ in 0..<2 {
            guard let nearest = nearest(edge: edge, step: step) else { break }
            let stepPower = stepPower(near: edge)
            let grown = edgePower(stepPower) * log(Double(edge) / Double(nearest.encoding.edge))
            step = Self.step(Double(nearest.encoding.quality)) * exp((size(nearest) + grown - goal) / stepPower)
        }
        return step > 100 ? 5000 / step : (200 - step) / 2
    }
}
