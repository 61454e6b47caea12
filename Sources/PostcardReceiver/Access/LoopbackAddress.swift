/// The names and addresses by which a machine is reached only from itself.
package enum LoopbackAddress {
    /// - Parameter host: A name or an address, IPv6 without brackets.
    package static func contains(_ host: some StringProtocol) -> Bool {
        let host = host.lowercased()
        // Names below localhost are this machine's too (RFC 6761 §6.3).
        if host == "localhost" || host.hasSuffix(".localhost") || host == "::1" { return true }
        let numbers = host.split(separator: ".", omittingEmptySubsequences: false)
        return numbers.count == 4 && numbers[0] == "127"
            && numbers.allSatisfy { $0.utf8.allSatisfy { (0x30...0x39).contains($0) } && UInt8($0) != nil }
    }
}
