#if Server
/// Why a request's body broke off, thrown by the body to whoever reads it.
enum RequestInterruption: Error {
    /// The client closed its side.
    case endedEarly
    /// What came is no HTTP, such as a broken chunk.
    case malformed
    /// No byte came for so long.
    case tooSlow(Duration)
    /// The connection is gone, and nobody is there to be answered.
    case disconnected(any Error)
}
#endif
