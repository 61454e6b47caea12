import NIOCore
import PostcardForm
import Synchronization

/// Checks a form while its bytes arrive, so that a malformed one is refused at the byte that is wrong, and not once all
/// of it was sent. Uploads from before a restart have no checker; every form is also checked when it is whole.
///
/// A class for the reason that ``IncomingForm`` is one. Only the request that holds the lock uses it.
final class ArrivingFormChecker: Sendable {
    private struct Reading {
        var parser: FormParser
        var rules: FormRuleChecker?
        var offset: Int64 = 0
    }

    private let reading: Mutex<Reading>

    init(parser: FormParser, rules: FormRules?) {
        reading = Mutex(Reading(parser: parser, rules: rules.map(FormRuleChecker.init)))
    }

    /// How many bytes of the form were checked.
    var offset: Int64 { reading.withLock { $0.offset } }

    /// Checks the next bytes. Throws ``FormProblem``.
    func check(_ bytes: ByteBuffer) throws {
        try reading.withLock { reading in
            var position = 0
            while let event = try reading.parser.nextEvent(in: bytes.readableBytesSpan, at: &position) {
                try reading.rules?.check(event, in: bytes.readableBytesSpan, readBy: reading.parser)
            }
            reading.offset += Int64(bytes.readableBytes)
        }
    }
}
