import HTTPTypes
import PostcardForm
import PostcardFoundation
import PostcardStore

/// The addresses that the proxies of a request have added to one of its header fields, last address first. An element
/// without an address, such as `unknown` or a malformed element, is `nil`.
///
/// Elements are read backwards, so that text from the client, such as an unclosed quote, cannot affect them.
struct ForwardedAddresses: Sequence, IteratorProtocol {
    enum Field {
        /// `Forwarded` (RFC 7239 §4): `for=192.0.2.1;proto=https, for="[2001:db8::1]:4711"`.
        case forwarded
        /// `X-Forwarded-For`, which has no standard: `192.0.2.1, 2001:db8::1`. Some proxies add ports.
        case xForwardedFor

        fileprivate var name: HTTPField.Name? {
            switch self {
            case .forwarded: HTTPField.Name("Forwarded")
            case .xForwardedFor: HTTPField.Name("X-Forwarded-For")
            }
        }
    }

    private typealias Bytes = ArraySlice<UInt8>

    private let field: Field
    /// The unread lines of the field. Several lines form one list (RFC 9110 §5.3).
    private var lines: [String]
    /// The unread part of the current line.
    private var rest: Bytes = []

    /// Reads the addresses in a header field; `nil` if the request lacks the field.
    init?(in fields: HTTPFields, _ field: Field) {
        guard let name = field.name, fields.contains(name) else { return nil }
        self.field = field
        lines = fields[values: name]
    }

    mutating func next() -> IPAddress?? {
        while true {
            guard rest.isEmpty else {
                let element = Self.trimmed(takeLastElement())
                // Empty elements of a list are ignored (RFC 9110 §5.6.1.2).
                if element.isEmpty { continue }
                return .some(address(of: element))
            }
            guard let line = lines.popLast() else { return nil }
            rest = Array(line.utf8)[...]
        }
    }

    /// Removes the last unquoted comma and the text after it, and returns that text.
    private mutating func takeLastElement() -> Bytes {
        var start = rest.endIndex
        var isQuoted = false
        while start > rest.startIndex {
            let byte = rest[start - 1]
            if byte == UInt8(ascii: "\""), field == .forwarded, !isEscaped(start - 1) {
                isQuoted.toggle()
            } else if byte == UInt8(ascii: ","), !isQuoted {
                break
            }
            start -= 1
        }
        let element = rest[start...]
        rest = rest[..<Swift.max(start - 1, rest.startIndex)]
        return element
    }

    /// Whether an odd number of backslashes precedes a byte (RFC 9110 §5.6.4).
    private func isEscaped(_ index: Int) -> Bool {
        let backslashes = rest[..<index].reversed().prefix { $0 == UInt8(ascii: "\\") }
        return backslashes.count % 2 == 1
    }

    private func address(of element: Bytes) -> IPAddress? {
        switch field {
        case .xForwardedFor: Self.address(ofNode: element, isIPv6InBrackets: false)
        case .forwarded: Self.node(of: element).flatMap { Self.address(ofNode: $0, isIPv6InBrackets: true) }
        }
    }

    // MARK: - Elements of Forwarded

    /// The value of `for` in an element; `nil` if the element is malformed, or has no `for` or several.
    private static func node(of element: Bytes) -> Bytes? {
        var rest = element
        var node: Bytes?
        while !rest.isEmpty {
            guard let equals = rest.firstIndex(of: UInt8(ascii: "=")) else { return nil }
            let name = trimmed(rest[..<equals])
            rest = rest[(equals + 1)...]
            guard isToken(name), let value = takeValue(&rest) else { return nil }
            if String(streamSafe: name).lowercased() == "for" {
                guard node == nil else { return nil }
                node = value
            }
        }
        return node
    }

    /// Removes and returns a value, and removes the semicolon after it.
    private static func takeValue(_ rest: inout Bytes) -> Bytes? {
        guard rest.first == UInt8(ascii: "\"") else {
            let value = rest.prefix { $0 != UInt8(ascii: ";") }
            rest = rest[value.endIndex...].dropFirst()
            return trimmed(value)
        }
        var value: Bytes = []
        var index = rest.startIndex + 1
        while index < rest.endIndex, rest[index] != UInt8(ascii: "\"") {
            if rest[index] == UInt8(ascii: "\\") { index += 1 }
            guard index < rest.endIndex else { return nil }
            value.append(rest[index])
            index += 1
        }
        guard index < rest.endIndex else { return nil }
        let end = rest[(index + 1)...].drop(while: \.isBlank)
        guard end.isEmpty || end.first == UInt8(ascii: ";") else { return nil }
        rest = end.dropFirst()
        return value
    }

    /// Whether a name consists of letters, digits and hyphens. Proxies use no other characters in names of parameters.
    private static func isToken(_ name: Bytes) -> Bool {
        !name.isEmpty && name.allSatisfy { $0.isLetterOrDigit || $0 == .dash }
    }

    // MARK: - Nodes

    /// The address of a node (RFC 7239 §6), which may have a port; `nil` for `unknown`, a name, or a malformed node.
    private static func address(ofNode node: Bytes, isIPv6InBrackets: Bool) -> IPAddress? {
        if node.first == UInt8(ascii: "[") {
            guard let end = node.firstIndex(of: UInt8(ascii: "]")), isEndOrPort(node[(end + 1)...]),
                let address = address(node[(node.startIndex + 1)..<end]), node[..<end].contains(UInt8(ascii: ":"))
            else { return nil }
            return address
        }
        let colons = node.lazy.filter { $0 == UInt8(ascii: ":") }.count
        if colons > 1 { return isIPv6InBrackets ? nil : address(node) }
        let name = node.prefix { $0 != UInt8(ascii: ":") }
        return isEndOrPort(node[name.endIndex...]) ? address(name) : nil
    }

    private static func address(_ bytes: Bytes) -> IPAddress? {
        IPAddress(text: String(streamSafe: bytes))
    }

    /// Whether only a port or nothing follows an address. A port has up to five digits, or a name (RFC 7239 §6.3).
    private static func isEndOrPort(_ bytes: Bytes) -> Bool {
        guard let colon = bytes.first else { return true }
        let port = bytes.dropFirst()
        guard colon == UInt8(ascii: ":"), let first = port.first else { return false }
        if first == UInt8(ascii: "_") {
            return port.allSatisfy { $0.isLetterOrDigit || "._-".utf8.contains($0) }
        }
        return port.count <= 5 && port.allSatisfy(\.isDigit)
    }

    // MARK: - Bytes

    private static func trimmed(_ bytes: Bytes) -> Bytes {
        let start = bytes.drop(while: \.isBlank)
        return start[..<(start.lastIndex { !$0.isBlank }.map { $0 + 1 } ?? start.startIndex)]
    }
}
