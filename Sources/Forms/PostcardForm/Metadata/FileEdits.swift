import PostcardPictureFormats

/// Bytes of a file to be overwritten with others while it is read, in ascending order and without overlaps.
public struct FileEdits: Sendable, Hashable {
    private let edits: PictureEdits

    init(_ edits: PictureEdits = PictureEdits()) {
        self.edits = edits
    }

    /// Whether nothing is overwritten.
    public var isEmpty: Bool { edits.isEmpty }

    /// Which bytes are overwritten, counted from the start of the file.
    public var ranges: [Range<Int64>] { edits.ranges }

    /// What is removed, each as the end of "It is sent without …".
    package var removed: [String] { edits.removed.phrases }

    /// Those of ``removed`` that are no metadata: pictures, a video, and data after the end.
    package var removedContent: [String] { edits.removed.intersection(.content).phrases }

    /// Whether the place where a picture was taken is removed: its position, or names of places.
    package var removesPosition: Bool { !edits.removed.isDisjoint(with: [.position, .places]) }

    /// Whether the file is a picture that has a video with it.
    package var hasVideo: Bool { edits.hasVideo }

    /// Overwrites what a piece of the file has of these bytes. The pieces may be of any size and in any order.
    ///
    /// - Parameters:
    ///   - buffer: The piece, as it was read.
    ///   - offset: Where it begins in the file.
    public func apply(to buffer: UnsafeMutableRawBufferPointer, at offset: Int64) {
        edits.apply(to: buffer, at: offset)
    }
}
