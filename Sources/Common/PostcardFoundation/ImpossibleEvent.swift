/// An event that must not happen in the state of a machine. It is a bug in this package, and stops a debug build.
package struct ImpossibleEvent: Error, CustomStringConvertible {
    package let description: String

    /// Makes the error, and stops a debug build.
    ///
    /// - Parameters:
    ///   - event: A case of an enum. Only its name is shown, because associated values may be secret.
    ///   - state: A case of an enum. Only its name is shown.
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
