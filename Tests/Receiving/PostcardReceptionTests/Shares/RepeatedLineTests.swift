import Testing

@testable import PostcardReception

struct RepeatedLineTests {
    @Test func `the first event is logged at once, and later ones together after a minute`() {
        var line = RepeatedLine()
        let start = ContinuousClock.now
        let counts = [0, 1, 59, 60, 61, 119, 200].map { line.count(at: start + .seconds($0)) }
        #expect(counts == [1, nil, nil, 3, nil, nil, 3])
    }
}
