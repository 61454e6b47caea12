/// What a comparison has to reach.
enum Goal: CustomStringConvertible {
    /// At least this fraction of the yardstick's speed.
    case ratio(Double)
    case bytesPerSecond(Double)
    case partsPerSecond(Double)

    func isMet(by comparison: Comparison) -> Bool {
        switch self {
        case .ratio(let least): comparison.ratio >= least
        case .bytesPerSecond(let least): comparison.bytesPerSecond >= least
        case .partsPerSecond(let least): comparison.partsPerSecond >= least
        }
    }

    var description: String {
        switch self {
        case .ratio(let least): "\((least * 100).rounded() / 100)"
        case .bytesPerSecond(let least): "\(Int(least / 1e9)) GB/s"
        case .partsPerSecond(let least): "\(Int(least / 1e6)) M parts/s"
        }
    }
}
