/// An event that cannot happen in the state of a machine: a mistake in this package, which stops a debug build.
package struct ImpossibleEvent: Error, CustomStringConvertible {
    package let description: String

    /// - Parameters:
    ///   - event: A case of an enum. Its associated values are not shown, because they may be secret.
    ///   - state: A case of an enum, of which only the name is shown as well.
    package init(_ event: Any, in state: Any) {
        description =
            "The event \(Self.name(event)) cannot happen in the state \(Self.name(state)). This is a mistake in "
            + "Postcard: please report it."
        assertionFailure(description)
    }

    private static func name(_ value: Any) -> String {
        Mirror(reflecting: value).children.first?.label ?? "\(value)"
    }
}
