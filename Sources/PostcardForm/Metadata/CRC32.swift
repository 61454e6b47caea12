/// The checksum of a PNG's chunks (W3C PNG 3rd edition, Annex D).
struct CRC32 {
    private var register: UInt32 = 0xFFFF_FFFF

    mutating func read(_ bytes: [UInt8]) {
        for byte in bytes { register = Self.table[Int(UInt8(truncatingIfNeeded: register) ^ byte)] ^ register >> 8 }
    }

    /// The checksum as it is written.
    var bytes: [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: ~register >> (24 - 8 * $0)) } }

    /// Bytes that bring the register to zero.
    var registerBytes: [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: register >> (8 * $0)) } }

    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ value >> 1 : value >> 1 }
    }
}
