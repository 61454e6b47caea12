import Testing

@testable import PostcardPictureFormats

@Suite struct IPTCTests {
    private static func withoutLocation(_ bytes: [UInt8]) throws -> [UInt8] {
        var removed: RemovedContent = []
        return try IPTCRecords.withoutLocation(bytes, &removed)
    }

    private static func record(_ dataset: UInt8, _ text: String) -> [UInt8] {
        [0x1C, 2, dataset, 0, UInt8(text.utf8.count)] + Array(text.utf8)
    }

    private static func padded(_ bytes: [UInt8], to count: Int) -> [UInt8] {
        bytes + [UInt8](repeating: 0, count: count - bytes.count)
    }

    private static func swapped(_ bytes: [UInt8]) -> [UInt8] { bytes.indices.map { bytes[$0 ^ 3] } }

    @Test(arguments: [false, true])
    func `what stays moves to the front, also where four bytes at a time have changed places`(
        isSwapped: Bool
    ) throws {
        let title = Self.record(5, "Choco")
        let bytes = Self.padded(Self.record(90, "Jeju") + title + Self.record(101, "Korea"), to: 32)
        let result = try Self.withoutLocation(isSwapped ? Self.swapped(bytes) : bytes)
        #expect((isSwapped ? Self.swapped(result) : result) == Self.padded(title, to: 32))
        #expect(try Self.withoutLocation(result) == result)
    }

    @Test func `records of which none stays become zeros`() throws {
        let bytes = Self.swapped(Self.padded(Self.record(90, "Jeju"), to: 12))
        #expect(try Self.withoutLocation(bytes) == [UInt8](repeating: 0, count: 12))
    }
}
