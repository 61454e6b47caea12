/// A language that the page speaks.
enum PageLanguage: String, CaseIterable {
    case english = "en"
    case korean = "ko"

    /// The language that a client likes best of those there are (RFC 9110 §12.5.4); English where it likes none.
    init(acceptLanguage: String?) {
        let ranges = (acceptLanguage ?? "").split(separator: ",").compactMap(Self.range)
        // The first of two that are liked equally.
        let best = ranges.filter { $0.weight > 0 }.reduce(nil as (language: PageLanguage, weight: Double)?) {
            best, range in
            (best?.weight ?? 0) < range.weight ? range : best
        }
        self = best?.language ?? .english
    }

    private static func range(_ text: Substring) -> (language: PageLanguage, weight: Double)? {
        let pieces = text.split(separator: ";").map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }
        guard let tag = pieces.first?.split(separator: "-").first, let language = PageLanguage(rawValue: String(tag))
        else {
            return nil
        }
        let weight = pieces.dropFirst().first { $0.hasPrefix("q=") }.map { Double($0.dropFirst(2)) ?? 0 }
        return (language, weight ?? 1)
    }
}
