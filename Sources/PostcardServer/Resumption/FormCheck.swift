import NIOCore
import PostcardForm

/// Looks at a form while it comes in pieces, so that one that is wrong is refused at the byte where it goes wrong, and
/// not once all of it has come. After a restart there is none for what had begun before; the form is looked at in any
/// case when it is whole.
struct FormCheck: Sendable {
    private var parser: FormParser
    private var checker: FormRuleChecker?
    /// The bytes of the form that were looked at.
    private(set) var offset: Int64 = 0

    init(parser: FormParser, rules: FormRules?) {
        self.parser = parser
        checker = rules.map(FormRuleChecker.init)
    }

    /// Looks at the bytes that follow.
    ///
    /// - Throws: ``FormProblem``.
    mutating func read(_ bytes: ByteBuffer) throws {
        var position = 0
        while let event = try parser.nextEvent(in: bytes.readableBytesSpan, at: &position) {
            try checker?.check(event, in: bytes.readableBytesSpan, readBy: parser)
        }
        offset += Int64(bytes.readableBytes)
    }
}
