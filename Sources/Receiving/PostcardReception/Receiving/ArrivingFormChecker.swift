import NIOCore
import PostcardForm
import Synchronization

/// Checks a form while its bytes arrive, so that a malformed one is refused at the byte that is wrong, and not once all
/// of it was sent. Uploads from before a restart have no checker; every form is also checked when it is whole.
///
/// A class for the reason that ``IncomingForm`` is one. Only the request that holds the lock uses it.
final class ArrivingFormChecker: Sendable {
    private let parser: Mutex<CheckedFormParser>

    /// The number of bytes that the form has before the body.
    private let skipped: Int64

    /// - Parameter frame: What makes the body a form, if it is none.
    /// - Throws: ``UploadProblem`` if the file that the body is must not be in the form.
    init(parser: CheckedFormParser, frame: FramedBody?) throws {
        self.parser = Mutex(parser)
        skipped = Int64(frame?.beginning.readableBytes ?? 0)
        guard let frame else { return }
        do {
            try check(frame.beginning)
        } catch let problem as FormProblem {
            throw UploadProblem(problem)
        }
    }

    /// The number of bytes of the body that were checked.
    var offset: Int64 { parser.withLock { $0.offset } - skipped }

    /// Checks the next bytes. Throws `FormProblem`.
    func check(_ bytes: ByteBuffer) throws {
        try parser.withLock { parser in
            var position = 0
            while try parser.nextEvent(in: bytes.readableBytesSpan, at: &position) != nil {}
        }
    }
}
