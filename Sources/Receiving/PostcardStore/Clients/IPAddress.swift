package import NIOCore
import PostcardForm

/// An IPv4 or IPv6 address. An IPv4 address in IPv6 notation (RFC 4291 §2.5.5.2) counts as the IPv4 address.
package struct IPAddress: Hashable, Sendable, CustomStringConvertible {
    package enum Family: Sendable {
        case v4, v6

        package var width: Int { self == .v4 ? 32 : 128 }
    }

    package let family: Family
    /// The address as a number. An IPv4 address has 32 bits.
    package let bits: UInt128

    /// - Parameter bytes: The 4 or 16 bytes of an address, in network byte order. Other lengths make the result `nil`.
    package init?(bytes: some Collection<UInt8>) {
        let number = bytes.prefix(16).reduce(UInt128(0)) { $0 << 8 | UInt128($1) }
        switch bytes.count {
        case 4: (family, bits) = (.v4, number)
        case 16 where number >> 32 == 0xFFFF: (family, bits) = (.v4, number & 0xFFFF_FFFF)
        case 16: (family, bits) = (.v6, number)
        default: return nil
        }
    }

    /// Makes the address of a socket; `nil` for an address of another family, such as that of a Unix socket.
    package init?(_ address: SocketAddress?) {
        guard let address, case let family = address.protocol, family != .unix else { return nil }
        let bytes = address.withSockAddr { pointer, count in
            let bytes = UnsafeRawBufferPointer(start: pointer, count: count)
            // The offsets are those of the addresses in `sockaddr_in` and `sockaddr_in6`.
            return family == .inet6 ? Array(bytes.dropFirst(8).prefix(16)) : Array(bytes.dropFirst(4).prefix(4))
        }
        self.init(bytes: bytes)
    }

    /// The maximum length of an address: `ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255`.
    private static let maximumCharacters = 45

    /// - Parameter text: An address without a port, brackets or a zone: decimals with periods, or as in RFC 4291 §2.2.
    package init?(text: some StringProtocol) {
        guard text.utf8.count <= Self.maximumCharacters, text.utf8.allSatisfy(Self.isOfAddress),
            let address = try? SocketAddress(ipAddress: String(text), port: 0)
        else { return nil }
        self.init(address)
    }

    private static func isOfAddress(_ byte: UInt8) -> Bool {
        byte.hexadecimalValue != nil || ".:".utf8.contains(byte)
    }

    package var description: String {
        let bytes = stride(from: family.width - 8, through: 0, by: -8).map { UInt8(truncatingIfNeeded: bits >> $0) }
        return (try? SocketAddress(packedIPAddress: ByteBuffer(bytes: bytes), port: 0))?.ipAddress ?? ""
    }
}

/// The address by which clients are distinguished and limited: an IPv4 address, or an IPv6 network of 64 bits, which
/// usually belongs to a single client (RFC 6177).
package struct PeerAddress: Hashable, Sendable {
    private enum Network: Hashable {
        case unknown
        case v4(UInt32)
        case v6(UInt64)
    }

    private let network: Network

    /// All clients whose addresses are unknown, because their connections are already closed. They share their limits,
    /// so that a client cannot avoid its limits by closing connections right after its requests.
    package static let unknown = PeerAddress(.unknown)

    private init(_ network: Network) {
        self.network = network
    }

    package init(_ address: IPAddress) {
        switch address.family {
        case .v4: self.init(.v4(UInt32(truncatingIfNeeded: address.bits)))
        case .v6: self.init(.v6(UInt64(truncatingIfNeeded: address.bits >> 64)))
        }
    }

    /// The address, or the first address of the network.
    private var address: IPAddress? {
        switch network {
        case .unknown: nil
        case .v4(let bits): IPAddress(bytes: withUnsafeBytes(of: bits.bigEndian) { Array($0) })
        case .v6(let bits): IPAddress(bytes: withUnsafeBytes(of: (bits.bigEndian, 0 as UInt64)) { Array($0) })
        }
    }

    /// Makes the address that identifies a client; `nil` for an address that does not, such as that of a Unix socket.
    package init?(_ address: SocketAddress?) {
        guard let address = IPAddress(address) else { return nil }
        self.init(address)
    }
}

/// The address is encoded as text. A store can thus save the client of an upload.
extension PeerAddress: Codable {
    package init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        if text.isEmpty {
            self = .unknown
        } else if let address = IPAddress(text: text) {
            self.init(address)
        } else {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(codingPath: decoder.codingPath, debugDescription: "The client is no address."))
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(address?.description ?? "")
    }
}
