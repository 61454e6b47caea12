import HTTPTypes
import NIOCore
import Testing

@testable import PostcardServer

struct FileRoomTests {
    private static let addresses = (1...4).compactMap { number in
        PeerAddress(try? SocketAddress(ipAddress: "192.0.2.\(number)", port: 1))
    }

    static let limits: [(maximum: Int, connections: Int, files: Int)] = [
        (300, 118, 118), (301, 118, 119), (20_000, 9968, 9968), (20_000, 100, 19_836), (64, 8, 8), (300, 10_000, 8),
    ]

    @Test(arguments: limits)
    func `requests may open what the connections leave`(maximum: Int, connections: Int, files: Int) {
        #expect(OpenFiles.forRequests(connections: connections, of: maximum) == files)
    }

    /// Takes room for files of an address until there is none left.
    private static func fill(_ room: inout FileRoom, for peer: PeerAddress?) -> Int {
        var count = 0
        while room.take(for: peer) == .taken { count += 1 }
        return count
    }

    @Test(arguments: [(118, 0.25, 29), (2, 0.25, 1), (8, 1, 8)] as [(Int, Double, Int)])
    func `an address gets its share, and at least one file`(total: Int, share: Double, expected: Int) {
        var room = FileRoom(total: total, share: share)
        #expect(Self.fill(&room, for: Self.addresses[0]) == expected)
        #expect(room.take(for: Self.addresses[0]) == (expected < total ? .fullForPeer : .full))
        #expect(Self.fill(&room, for: Self.addresses[1]) == min(expected, total - expected))
        room.giveBack(for: Self.addresses[0])
        #expect(room.take(for: Self.addresses[0]) == .taken)
    }

    @Test func `a client without an address gets all that is left, and a reserved file is there in any case`() {
        var room = FileRoom(total: 8, share: 0.25)
        #expect(Self.fill(&room, for: Self.addresses[0]) == 2)
        #expect(Self.fill(&room, for: nil) == 6)
        #expect(room.take(for: Self.addresses[0], isReserved: true) == .taken)
        #expect(room.count == 9)
        room.giveBack(for: nil)
        #expect(room.take(for: Self.addresses[1]) == .full)
        room.giveBack(for: Self.addresses[0])
        #expect(room.take(for: Self.addresses[1]) == .taken)
    }

    @Test func `uploads and responses have one room, which is released with them`() throws {
        let budget = ResponseBudget(bytes: 4096, files: 8, clientShare: 0.25)
        do {
            let upload = try budget.holdUploadedFile(for: Self.addresses[0])
            let body = budget.body(
                of: BytesInMemory(bytes: ByteBuffer(string: "a")), try budget.holdFile(for: Self.addresses[0]))
            let refusals = [
                #expect(throws: UploadProblem.self) { try budget.holdUploadedFile(for: Self.addresses[0]) },
                #expect(throws: UploadProblem.self) { try budget.holdFile(for: Self.addresses[0]) },
            ]
            #expect(refusals.map { $0?.code } == ["too-many-uploads-of-client", "too-many-answers-of-client"])
            #expect(refusals.allSatisfy { $0?.status == .tooManyRequests && $0?.limit?.value == 2 })
            let other = try budget.holdFile(for: Self.addresses[1])
            #expect(budget.openFileCount == 3)
            withExtendedLifetime((upload, body, other)) {}
        }
        #expect(budget.openFileCount == 0)
    }
}
