import NIOCore
import PostcardForm
import Synchronization

/// Checks a form while its bytes arrive, so that a malformed one is refused at the byte that is wrong, and not once all
/// of it was sent. Uploads from before a restart have no checker; every form is also checked when it is whole.
///
/// A class for the reason that ``IncomingForm`` is one. Only the request that holds the lock uses it.
final class ArrivingFormChecker: Sendable {
    private let parser: Mutex<CheckedFormParser>

    init(parser: CheckedFormParser) {
        self.parser = Mutex(parser)
    }

    /// The number of bytes of the form that were checked.
    var offset: Int64 { parser.withLock { $0.offset } }

    /// Checks the next bytes. Throws ``FormProblem``.
    func check(_ bytes: ByteBuffer) throws {
        try parser.withLock { parser in
            var position = 0
            while try parser.nextEvent(in: bytes.readableBytesSpan, at: &position) != nil {}
        }
    }
}
