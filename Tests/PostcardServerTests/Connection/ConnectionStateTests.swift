import Testing

@testable import PostcardServer

struct ConnectionStateTests {
    @Test("A complete request and its response leave the connection open")
    func ordinaryExchange() {
        var state = ConnectionState(maximumDrainBytes: 10)
        #expect(state.silence == .betweenRequests)
        #expect(state.headRead() == .pass)
        #expect(state.silence == .inBody)
        #expect(state.bodyRead(5) == .pass)
        #expect(state.endRead() == .pass)
        #expect(state.silence == .expected)
        #expect(state.responseBegins(isLast: false) == .write)
        #expect(state.responseEnds() == .write)
        #expect(state.silence == .betweenRequests)
    }

    @Test("A response before the end of the body is the last, and the rest of the body is dropped up to the limit")
    func earlyResponse() {
        var state = ConnectionState(maximumDrainBytes: 10)
        _ = state.headRead()
        #expect(state.responseBegins(isLast: false) == .writeAsLast)
        #expect(state.bodyRead(4) == .drop)
        #expect(state.responseEnds() == .writeAndLinger)
        #expect(state.silence == .afterLastResponse)
        #expect(state.bodyRead(5) == .drop)
        #expect(state.bodyRead(1) == .close)
    }

    @Test("The response to the first of two requests is not early, even if the second is still being received")
    func responseWhileNextIsRead() {
        var state = ConnectionState(maximumDrainBytes: 10)
        _ = state.headRead()
        _ = state.endRead()
        _ = state.headRead()
        #expect(state.responseBegins(isLast: false) == .write)
        #expect(state.responseEnds() == .write)
        #expect(state.responseBegins(isLast: false) == .writeAsLast)
    }

    @Test("A body that breaks off is an interruption, and its response closes the connection")
    func brokenBody() {
        var state = ConnectionState(maximumDrainBytes: 10)
        _ = state.headRead()
        #expect(state.inputFailed() == .passAsInterruption)
        #expect(state.inputClosed() == .pass)
        #expect(state.responseBegins(isLast: false) == .writeAsLast)
        #expect(state.responseEnds() == .writeAndClose)
    }

    @Test("Input that is not HTTP is refused once, after the responses to earlier requests")
    func malformedInput() {
        var state = ConnectionState(maximumDrainBytes: 10)
        _ = state.headRead()
        _ = state.endRead()
        #expect(state.inputFailed() == .pass)
        #expect(state.responseBegins(isLast: false) == .write)
        #expect(state.responseEnds() == .write)
        #expect(state.responseBegins(isLast: true) == .writeMalformedRequest)
        #expect(state.responseEnds() == .writeAndLinger)
        #expect(state.responseBegins(isLast: true) == .drop)
        #expect(state.responseEnds() == .drop)
    }

    @Test("A client that closes after its last response ends the connection")
    func clientCloses() {
        var state = ConnectionState(maximumDrainBytes: 10)
        #expect(state.outputCloses() == .linger)
        #expect(state.inputClosed() == .close)
        #expect(state.outputCloses() == .ignore)
        #expect(state.headRead() == .drop)
    }
}
