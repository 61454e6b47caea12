import Testing

/// How many lines of code an app needs for what most apps do.
@Suite struct ShortProgramsTests {
    /// The parts of each program, the snippet that has them, and the number of lines that it may have.
    @Test(arguments: [
        (["onePhoto"], "ShortPrograms", 5), (["typedEndpoint", "typedUpload"], "ShortPrograms", 13),
        (["token"], "ShortPrograms", 2), (["progress"], "ShortPrograms", 17), (["show"], "UploadsInTheBackground", 44),
        (["shareExtension"], "ShortPrograms", 6), (["retry"], "ShortPrograms", 11),
        (["withoutNetwork", "testWithoutNetwork"], "ShortPrograms", 18),
    ])
    func `a program stays short`(parts: [String], snippet: String, limit: Int) throws {
        var (lines, part) = (0, "")
        for line in try Document("Snippets/\(snippet).swift").text.split(separator: "\n") {
            let code = line.drop(while: \.isWhitespace)
            if code.hasPrefix("// snippet.") {
                part = String(code.dropFirst("// snippet.".count))
            } else if parts.contains(part), !code.isEmpty, !code.hasPrefix("//") {
                lines += 1
            }
        }
        #expect((1...limit).contains(lines), "\(lines) lines")
    }
}
