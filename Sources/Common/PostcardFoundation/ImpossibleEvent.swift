/// An event that cannot happen in the current state of a state machine. It shows a mistake in this package.
package struct ImpossibleEvent: Error, Hashable, CustomStringConvertible {
    package let description: String

    /// Makes the error for an event and a state, each a case of an enum. Only the names of the cases are shown, because
    /// their associated values may be secret.
    package init(_ event: Any, in state: Any) {
        description =
            "The event \(Self.name(event)) cannot happen in the state \(Self.name(state)). This is a mistake in "
            + "Postcard: please report it."
    }

    /// Stops a debug build. In a release build, the caller throws the error.
    package func stoppingDebugBuilds() -> ImpossibleEvent {
        assertionFailure(description)
        return self
    }

    private static func name(_ value: Any) -> String {
        Mirror(reflecting: value).children.first?.label ?? "\(value)"
    }
}
