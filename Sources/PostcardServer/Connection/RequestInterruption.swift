/// Why a request's body broke off, thrown by the body to whoever reads it.
enum RequestInterruption: Error {
    /// The client closed its side.
    case endedEarly
    /// What came is no HTTP, such as a broken chunk.
    case malformed
    /// No byte came for so long.
    case tooSlow(Duration)
    /// The bytes came slower than so many a second.
    case belowMinimumRate(Int)
    /// The connection is gone, and nobody is there to be answered.
    case disconnected(any Error)

    /// What it is to who sent the request; `nil` where nobody is there.
    ///
    /// - Parameter offset: The bytes of the body that came.
    func problem(at offset: Int64) -> UploadProblem? {
        switch self {
        case .endedEarly: .endedEarly(at: offset)
        case .malformed: .malformedRequest
        case .tooSlow(let timeout): .tooSlow(timeout)
        case .belowMinimumRate(let minimum): .belowMinimumRate(minimum)
        case .disconnected: nil
        }
    }
}
