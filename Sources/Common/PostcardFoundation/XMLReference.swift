extension Unicode.Scalar {
    /// The character that an XML reference stands for (XML 1.0 §4.1, §4.6); `nil` for an unknown reference. The name is
    /// the reference without `&` and `;`, such as `lt` or `#x3C`.
    package init?(xmlReference name: some StringProtocol) {
        switch name {
        case "amp": self = "&"
        case "apos": self = "'"
        case "gt": self = ">"
        case "lt": self = "<"
        case "quot": self = "\""
        default:
            guard name.hasPrefix("#") else { return nil }
            let digits = name.dropFirst()
            let code = digits.hasPrefix("x") ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
            guard let scalar = code.flatMap(Unicode.Scalar.init) else { return nil }
            self = scalar
        }
    }
}
