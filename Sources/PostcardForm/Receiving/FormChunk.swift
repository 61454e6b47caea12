#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Bytes of a body as they come from a connection or a file, whatever their type.
///
/// `Data` and `ArraySlice<UInt8>` share their storage with what is cut out of them, so that a part's content is
/// handed on without being copied. An `Array` has no such pieces: wrap it as `array[...]`.
public protocol FormChunk: Sendable {
    /// Takes a copy of a few bytes that were kept from an earlier chunk.
    init(keptBytes: ArraySlice<UInt8>)

    /// Lends the bytes, which lie in one piece.
    func withBytes<Result, Failure: Error>(_ body: (RawSpan) throws(Failure) -> Result) throws(Failure) -> Result

    /// The bytes at a range of indices, counted from 0.
    func piece(_ range: Range<Int>) -> Self
}

extension ArraySlice<UInt8>: FormChunk {
    public init(keptBytes: ArraySlice<UInt8>) {
        self = keptBytes
    }

    public func withBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(span.bytes)
    }

    public func piece(_ range: Range<Int>) -> ArraySlice<UInt8> {
        dropFirst(range.lowerBound).prefix(range.count)
    }
}

extension Data: FormChunk {
    public init(keptBytes: ArraySlice<UInt8>) {
        self.init(keptBytes)
    }

    public func withBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(bytes)
    }

    public func piece(_ range: Range<Int>) -> Data {
        dropFirst(range.lowerBound).prefix(range.count)
    }
}
