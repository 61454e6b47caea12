package import HTTPTypes
package import PostcardWire

/// How the checks make their requests.
package struct CheckSettings: Sendable {
    /// Fields of every request, such as `Authorization`.
    package var headerFields = HTTPFields()
    /// The version of the draft that the requests follow and name. A server is judged by what that version asks for.
    package var version = ResumptionVersion.latestNumbered
    /// The longest wait for a response. Defaults to 10 seconds.
    package var timeout = Duration.seconds(10)
    /// The shortest wait for an interim response that must not be sent. Defaults to a second.
    package var quietTime = Duration.seconds(1)
    /// How long the server has to receive what was sent before it gets another request, and how long when a check that
    /// found a violation is repeated. Defaults to 0.15, 1 and 3 seconds.
    package var settlingTimes: [Duration] = [.milliseconds(150), .seconds(1), .seconds(3)]

    package init() {}
}
