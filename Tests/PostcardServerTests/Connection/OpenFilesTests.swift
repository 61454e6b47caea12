import Testing

@testable import PostcardServer

struct OpenFilesTests {
    static let limits: [(maximum: Int, connections: Int, files: Int)] = [
        (300, 118, 118), (301, 118, 119), (20_000, 9968, 9968), (20_000, 100, 19_836), (64, 8, 8), (300, 10_000, 8),
    ]

    @Test(arguments: limits)
    func `requests may open what the connections leave`(maximum: Int, connections: Int, files: Int) {
        #expect(OpenFiles.forRequests(connections: connections, of: maximum) == files)
    }
}
