/// Is told what the readers of a layout hand out, while they do.
package protocol BodyObserver: Sendable {
    /// A reader was made.
    ///
    /// - Parameter offset: Its first byte, counted from the start of the body.
    /// - Returns: A number by which it tells what it hands out.
    func readerBegan(at offset: Int64) -> Int

    /// A reader hands out bytes of a part's content.
    ///
    /// - Parameters:
    ///   - bytes: The bytes, which are the observer's only until it returns.
    ///   - partIndex: The part's place in the form, from 0.
    ///   - offset: Where they lie, counted from the start of the part's content.
    ///   - reader: The reader's number.
    func reader(
        _ reader: Int, handsOut bytes: UnsafeRawBufferPointer, ofPart partIndex: Int, at offset: Int64)

    /// A reader has handed out the body's last byte.
    func readerEnded(_ reader: Int)
}
