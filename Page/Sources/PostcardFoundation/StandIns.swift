// What the Doctor uses of Foundation.

/// Bytes.
public typealias Data = [UInt8]

extension [UInt8] {
    package enum Base64Options { case ignoreUnknownCharacters }

    /// Decodes base64 (RFC 4648 §4) as Foundation does: more padding than is needed is accepted, and what follows it is ignored
    /// with the option.
    package init?(base64Encoded text: some Collection<UInt8>, options: Base64Options? = nil) {
        var bytes: [UInt8] = []
        var bits: UInt32 = 0
        var count = 0
        var padding = 0
        decoding: for byte in text {
            let value: UInt8
            switch byte {
            case 0x41...0x5A: value = byte - 0x41
            case 0x61...0x7A: value = byte - 0x61 + 26
            case 0x30...0x39: value = byte - 0x30 + 52
            case 0x2B: value = 62
            case 0x2F: value = 63
            case 0x3D:
                padding += 1
                continue
            default:
                if options != nil { continue }
                return nil
            }
            if padding > 0 {
                if options != nil, count % 4 == 3 || count % 4 == 2 && padding > 1 { break decoding }
                return nil
            }
            bits = bits << 6 | UInt32(value)
            count += 1
            if count % 4 == 0 {
                bytes += [UInt8(bits >> 16 & 0xFF), UInt8(bits >> 8 & 0xFF), UInt8(bits & 0xFF)]
                bits = 0
            }
        }
        switch count % 4 {
        case 0 where count > 0 || padding == 0: break
        case 2 where padding > 1: bytes.append(UInt8(bits >> 4 & 0xFF))
        case 3 where padding > 0: bytes += [UInt8(bits >> 10 & 0xFF), UInt8(bits >> 2 & 0xFF)]
        default: return nil
        }
        self = bytes
    }

    package init?(base64Encoded text: String, options: Base64Options? = nil) {
        self.init(base64Encoded: Array<UInt8>(text.utf8), options: options)
    }
}

/// A time.
public struct Date: Sendable, Hashable, Comparable {
    package let timeIntervalSince1970: Double

    package init(timeIntervalSince1970: Double) {
        self.timeIntervalSince1970 = timeIntervalSince1970
    }

    /// The time now, as the page says.
    public init() {
        self.init(timeIntervalSince1970: secondsNow())
    }

    public static func < (left: Date, right: Date) -> Bool { left.timeIntervalSince1970 < right.timeIntervalSince1970 }
}

public protocol LocalizedError: Error {
    var errorDescription: String? { get }
    var recoverySuggestion: String? { get }
}

/// Seconds since 1970, asked of the page.
@_extern(wasm, module: "page", name: "secondsNow") @_extern(c)
func secondsNow() -> Double

extension [UInt8] {
    /// Base64 (RFC 4648 §4).
    package func base64EncodedString() -> String {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var text: [UInt8] = []
        for start in stride(from: 0, to: count, by: 3) {
            let piece = self[start..<Swift.min(start + 3, count)]
            var bits = piece.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - piece.count))
            var group = [UInt8](repeating: 0x3D, count: 4)
            for index in (0..<4).reversed() {
                if index <= piece.count { group[index] = letters[Int(bits & 63)] }
                bits >>= 6
            }
            text += group
        }
        return String(decoding: text, as: UTF8.self)
    }
}
