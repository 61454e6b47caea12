/// Lines at the end of the terminal at standard error that are drawn again and again, each time over the last.
struct RedrawnLines {
    private var count = 0

    /// Draws the lines over those of the last time.
    mutating func draw(_ lines: [String]) {
        // Up to where they began; then each line, and what is left of the one that was there.
        let start = count > 0 ? "\u{1B}[\(count)A\r" : ""
        Terminal.saySequence(start + lines.map { $0 + "\u{1B}[K\n" }.joined() + "\u{1B}[J")
        count = lines.count
    }
}
