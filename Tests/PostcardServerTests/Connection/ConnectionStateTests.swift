import Testing

@testable import PostcardServer

struct ConnectionStateTests {
    @Test("A request that is read whole and then answered leaves the connection open")
    func ordinaryExchange() {
        var state = ConnectionState(maximumDrainBytes: 10)
        #expect(state.silence == .betweenRequests)
        #expect(state.headRead() == .pass)
        #expect(state.silence == .inBody)
        #expect(state.bodyRead(5) == .pass)
        #expect(state.endRead() == .pass)
        #expect(state.silence == .expected)
        #expect(state.answerBegins(isLast: false) == .write)
        #expect(state.answerEnds() == .write)
        #expect(state.silence == .betweenRequests)
    }

    @Test("An answer before the end of the body is the last, and the rest is dropped up to the bound")
    func earlyAnswer() {
        var state = ConnectionState(maximumDrainBytes: 10)
        _ = state.headRead()
        #expect(state.answerBegins(isLast: false) == .writeAsLast)
        #expect(state.bodyRead(4) == .drop)
        #expect(state.answerEnds() == .writeAndLinger)
        #expect(state.silence == .afterLastAnswer)
        #expect(state.bodyRead(5) == .drop)
        #expect(state.bodyRead(1) == .close)
    }

    @Test("An answer to the first of two requests is not early, though the second is still coming")
    func answerWhileNextIsRead() {
        var state = ConnectionState(maximumDrainBytes: 10)
        _ = state.headRead()
        _ = state.endRead()
        _ = state.headRead()
        #expect(state.answerBegins(isLast: false) == .write)
        #expect(state.answerEnds() == .write)
        #expect(state.answerBegins(isLast: false) == .writeAsLast)
    }

    @Test("A body that breaks off is an interruption, and its answer closes the connection")
    func brokenBody() {
        var state = ConnectionState(maximumDrainBytes: 10)
        _ = state.headRead()
        #expect(state.inputFailed() == .passAsInterruption)
        #expect(state.inputClosed() == .pass)
        #expect(state.answerBegins(isLast: false) == .writeAsLast)
        #expect(state.answerEnds() == .writeAndClose)
    }

    @Test("Input that is no HTTP is answered once, after the answers that are owed")
    func malformedInput() {
        var state = ConnectionState(maximumDrainBytes: 10)
        _ = state.headRead()
        _ = state.endRead()
        #expect(state.inputFailed() == .pass)
        #expect(state.answerBegins(isLast: false) == .write)
        #expect(state.answerEnds() == .write)
        #expect(state.answerBegins(isLast: true) == .writeMalformedRequest)
        #expect(state.answerEnds() == .writeAndLinger)
        #expect(state.answerBegins(isLast: true) == .drop)
        #expect(state.answerEnds() == .drop)
    }

    @Test("A client that closes while its answer is awaited to be read ends the connection")
    func clientCloses() {
        var state = ConnectionState(maximumDrainBytes: 10)
        #expect(state.outputCloses() == .linger)
        #expect(state.inputClosed() == .close)
        #expect(state.outputCloses() == .ignore)
        #expect(state.headRead() == .drop)
    }
}
