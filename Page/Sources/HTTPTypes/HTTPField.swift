/// The name of a header field, as far as the Doctor asks.
public enum HTTPField {
    public struct Name: CustomStringConvertible {
        public let rawName: String
        public var description: String { rawName }
        /// In lower case, as HTTP/2 has names.
        public var canonicalName: String { rawName.lowercased() }

        public init?(_ name: String) {
            guard !name.isEmpty, name.utf8.allSatisfy(Self.isToken) else { return nil }
            rawName = name
        }

        private static func isToken(_ byte: UInt8) -> Bool {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            case 0x21, 0x23, 0x24, 0x25, 0x26, 0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E, 0x5F, 0x60, 0x7C, 0x7E: true
            default: false
            }
        }
    }
}
