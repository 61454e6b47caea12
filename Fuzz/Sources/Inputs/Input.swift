/// The bytes of one run, from which a target takes what it needs to build its case.
///
/// Anything read after the end is zero or empty, so that every input is a case.
public struct Input {
    private var bytes: ArraySlice<UInt8>

    public init(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        bytes = Array(UnsafeBufferPointer(start: start, count: count))[...]
    }

    public var isEmpty: Bool { bytes.isEmpty }

    /// The next byte.
    public mutating func byte() -> UInt8 {
        bytes.popFirst() ?? 0
    }

    /// The next bytes, as many as the byte before them says.
    public mutating func shortBytes() -> [UInt8] {
        let count = min(Int(byte()), bytes.count)
        defer { bytes = bytes.dropFirst(count) }
        return Array(bytes.prefix(count))
    }

    /// A short text; bytes that are not UTF-8 are U+FFFD.
    public mutating func text() -> String {
        String(decoding: shortBytes(), as: UTF8.self)
    }

    /// All that is left.
    public mutating func rest() -> [UInt8] {
        defer { bytes = [] }
        return Array(bytes)
    }
}

/// Ends the run as a finding.
public func finding(_ what: String) -> Never {
    fatalError(what)
}
