/// The steady clock of a client's uploads, with the timer of their timeouts.
package struct UploadTime: Sendable {
    package let clock: any UploadClock
    let timer: SharedTimer

    static let system = UploadTime(SystemClock())

    /// Makes the time that a clock shows.
    package init(_ clock: any UploadClock) {
        self.clock = clock
        timer = SharedTimer(clock)
    }

    /// The time of a transport that has its own, or else the system's.
    init(of transport: any UploadTransport) {
        self = (transport as? any TimedTransport)?.time ?? .system
    }
}

/// A transport with a time of its own, for tests.
package protocol TimedTransport: UploadTransport {
    var time: UploadTime { get }
}
