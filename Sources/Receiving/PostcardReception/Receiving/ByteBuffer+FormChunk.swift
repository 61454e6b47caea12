public import NIOCore
public import PostcardForm

extension ByteBuffer: FormChunk {
    public init(formChunk keptBytes: ArraySlice<UInt8>) {
        self.init(bytes: keptBytes)
    }

    public func withFormChunkBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(readableBytesSpan)
    }

    public func formChunkPiece(_ range: Range<Int>) -> ByteBuffer {
        getSlice(at: readerIndex + range.lowerBound, length: range.count) ?? ByteBuffer()
    }
}
