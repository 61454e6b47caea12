import Testing

@testable import PostcardReception

struct OpenFilesTests {
    /// How many files there are besides those of the receiver itself, and how many connections and files of requests.
    static let limits: [(others: Int, connections: Int, files: Int)] = [
        (236, 118, 118), (237, 118, 119), (19_936, 9968, 9968), (19_936, 100, 19_836), (0, 8, 8), (236, 10_000, 8),
    ]

    @Test(arguments: limits)
    func `requests may open what the connections leave`(others: Int, connections: Int, files: Int) {
        #expect(OpenFiles.forRequests(connections: connections, of: OpenFiles.reserve + others) == files)
    }

    @Test(arguments: [(1, 1), (952, 952), (953, 952), (10_000_000, 952)])
    func `connections leave files for requests, however many are wanted`(connections: Int, allowed: Int) {
        let maximum = OpenFiles.reserve + 960
        #expect(OpenFiles.allowed(connections, of: maximum) == allowed)
        #expect(allowed + OpenFiles.forRequests(connections: allowed, of: maximum) + OpenFiles.reserve <= maximum)
    }
}
