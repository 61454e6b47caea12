/// The characters that one place of a pattern takes.
struct ScalarSet: Sendable {
    var ranges: [ClosedRange<UInt32>] = []
    var categories: Set<Unicode.GeneralCategory> = []
    var takesWhiteSpace = false
    /// Sets within the set, such as `\D` in `[\D5]`.
    var members: [ScalarSet] = []
    var isNegated = false

    init() {}

    init(_ scalar: Unicode.Scalar) {
        ranges = [scalar.value...scalar.value]
    }

    private init(_ ranges: [ClosedRange<Unicode.Scalar>]) {
        self.ranges = ranges.map { $0.lowerBound.value...$0.upperBound.value }
    }

    /// - Parameter name: A general category of Unicode, such as `Lu`, or the first letter of several, such as `L`.
    init?(category name: String) {
        categories = Set(Self.categories.filter { $0.key == name || $0.key.prefix(1) == name }.values)
        if categories.isEmpty { return nil }
    }

    func contains(_ scalar: Unicode.Scalar) -> Bool {
        let isMember =
            ranges.contains { $0.contains(scalar.value) }
            || (!categories.isEmpty && categories.contains(scalar.properties.generalCategory))
            || (takesWhiteSpace && scalar.properties.isWhitespace) || members.contains { $0.contains(scalar) }
        return isMember != isNegated
    }

    var negated: ScalarSet {
        var set = self
        set.isNegated.toggle()
        return set
    }

    /// The only character, where the set is one.
    var single: UInt32? {
        guard ranges.count == 1, ranges[0].count == 1, !isNegated else { return nil }
        return ranges[0].lowerBound
    }

    static let digits = ScalarSet(["0"..."9"])
    static let wordCharacters = ScalarSet(["0"..."9", "A"..."Z", "a"..."z", "_"..."_"])
    static let allButLineBreaks = ScalarSet(["\n"..."\n", "\r"..."\r", "\u{2028}"..."\u{2029}"]).negated
    static let whiteSpace = {
        var set = ScalarSet()
        set.takesWhiteSpace = true
        return set
    }()

    private static let categories: [String: Unicode.GeneralCategory] = [
        "Lu": .uppercaseLetter, "Ll": .lowercaseLetter, "Lt": .titlecaseLetter, "Lm": .modifierLetter,
        "Lo": .otherLetter, "Mn": .nonspacingMark, "Mc": .spacingMark, "Me": .enclosingMark, "Nd": .decimalNumber,
        "Nl": .letterNumber, "No": .otherNumber, "Pc": .connectorPunctuation, "Pd": .dashPunctuation,
        "Ps": .openPunctuation, "Pe": .closePunctuation, "Pi": .initialPunctuation, "Pf": .finalPunctuation,
        "Po": .otherPunctuation, "Sm": .mathSymbol, "Sc": .currencySymbol, "Sk": .modifierSymbol, "So": .otherSymbol,
        "Zs": .spaceSeparator, "Zl": .lineSeparator, "Zp": .paragraphSeparator, "Cc": .control, "Cf": .format,
        "Cs": .surrogate, "Co": .privateUse, "Cn": .unassigned,
    ]
}
