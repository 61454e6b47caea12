import PostcardFoundation

/// Numbers as a form writes them: decimal digits, a point, an exponent.
enum NumberText {
    /// Whether the text is a whole number, even one that is too large for every type.
    static func isWhole(_ text: String) -> Bool {
        let digits = unsigned(text)
        return !digits.isEmpty && digits.allSatisfy(\.isDigit)
    }

    /// The finite number in a text.
    static func floatingPoint<Number: BinaryFloatingPoint & LosslessStringConvertible>(_ text: String) -> Number? {
        // The initializer alone would accept hexadecimal digits, infinities and NaN.
        guard isDecimal(text), let number = Number(text), number.isFinite else { return nil }
        return number
    }

    /// The number in a text; `nil` if it has more than the 38 digits of a `Decimal`.
    static func decimal(_ text: String) -> Decimal? {
        guard isDecimal(text), significantDigits(text) <= 38 else { return nil }
        return Decimal(string: text)
    }

    /// Whether the text is a decimal number, whole or not, even one that is too large for every type.
    static func isDecimal(_ text: String) -> Bool {
        var rest = unsigned(text)
        let wholePart = rest.prefix(while: \.isDigit)
        rest = rest[wholePart.endIndex...]
        var digits = wholePart.count
        if rest.first == UInt8(ascii: ".") {
            let fraction = rest.dropFirst().prefix(while: \.isDigit)
            digits += fraction.count
            rest = rest[fraction.endIndex...]
        }
        guard digits > 0 else { return false }
        if rest.isEmpty { return true }
        guard rest.removeFirst().asciiLowercased == UInt8(ascii: "e") else { return false }
        if let sign = rest.first, signs.contains(sign) { rest.removeFirst() }
        return !rest.isEmpty && rest.allSatisfy(\.isDigit)
    }

    private static let signs = [UInt8(ascii: "+"), UInt8(ascii: "-")]

    private static func unsigned(_ text: String) -> Substring.UTF8View {
        text.utf8.first.map(signs.contains) == true ? text.utf8.dropFirst() : text.utf8[...]
    }

    /// The digits from the first that is not zero to the last that is not.
    private static func significantDigits(_ text: String) -> Int {
        let digits = text.utf8.prefix { $0.asciiLowercased != UInt8(ascii: "e") }.filter(\.isDigit)
        let zero = UInt8(ascii: "0")
        guard let first = digits.firstIndex(where: { $0 != zero }), let last = digits.lastIndex(where: { $0 != zero })
        else { return 0 }
        return last - first + 1
    }
}
