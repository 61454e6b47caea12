import NIOCore
import PostcardForm
import Synchronization

/// Looks at a form while it comes in pieces, so that one that is wrong is refused at the byte where it goes wrong, and
/// not once all of it has come. After a restart there is none for what had begun before; the form is looked at in any
/// case when it is whole.
///
/// It is an object, because it is large: see ``IncomingForm``. One request at a time uses it.
final class FormCheck: Sendable {
    private struct Reading {
        var parser: FormParser
        var checker: FormRuleChecker?
        var offset: Int64 = 0
    }

    private let reading: Mutex<Reading>

    init(parser: FormParser, rules: FormRules?) {
        reading = Mutex(Reading(parser: parser, checker: rules.map(FormRuleChecker.init)))
    }

    /// The bytes of the form that were looked at.
    var offset: Int64 { reading.withLock { $0.offset } }

    /// Looks at the bytes that follow.
    ///
    /// - Throws: ``FormProblem``.
    func read(_ bytes: ByteBuffer) throws {
        try reading.withLock { reading in
            var position = 0
            while let event = try reading.parser.nextEvent(in: bytes.readableBytesSpan, at: &position) {
                try reading.checker?.check(event, in: bytes.readableBytesSpan, readBy: reading.parser)
            }
            reading.offset += Int64(bytes.readableBytes)
        }
    }
}
