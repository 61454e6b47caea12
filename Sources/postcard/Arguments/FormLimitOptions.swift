import ArgumentParser
import PostcardForm

/// How many parts a form that `serve` accepts may have, and how much may be around their contents.
struct FormLimitOptions: ParsableArguments {
    private static let defaults = FormLimits()

    @Option(help: ArgumentHelp("The most parts of a form (\(defaults.maximumParts)).", valueName: "count"))
    var maxParts: Int?

    @Option(
        help: ArgumentHelp("The most bytes of a part's header (\(defaults.maximumHeaderBytes)).", valueName: "size"))
    var maxPartHeader: ByteCount?

    @Option(
        help: ArgumentHelp("The most fields of a part's header (\(defaults.maximumHeaderFields)).", valueName: "count"))
    var maxPartHeaderFields: Int?

    @Option(
        help: ArgumentHelp(
            "The most bytes before the first part (\(defaults.maximumPreambleBytes)).", valueName: "size"))
    var maxPreamble: ByteCount?

    @Option(
        help: ArgumentHelp(
            "The most bytes behind the last part (\(defaults.maximumEpilogueBytes)).", valueName: "size"))
    var maxEpilogue: ByteCount?

    func validate() throws {
        for (name, count) in [("max-parts", maxParts), ("max-part-header-fields", maxPartHeaderFields)] {
            if let count, count < 1 { throw ValidationError("--\(name) wants a number from 1.") }
        }
        if let maxPartHeader, maxPartHeader.bytes < 1 {
            throw ValidationError("--max-part-header wants a size from 1 byte.")
        }
    }

    func apply(to limits: inout FormLimits) {
        if let maxParts { limits.maximumParts = maxParts }
        if let maxPartHeader { limits.maximumHeaderBytes = Int(maxPartHeader.bytes) }
        if let maxPartHeaderFields { limits.maximumHeaderFields = maxPartHeaderFields }
        if let maxPreamble { limits.maximumPreambleBytes = maxPreamble.bytes }
        if let maxEpilogue { limits.maximumEpilogueBytes = maxEpilogue.bytes }
    }
}
