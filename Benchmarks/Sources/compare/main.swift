import Bodies
import PostcardForm

/// What a case has to reach at chunks of 64 KiB.
let goals: [String: Goal] = [
    BodyCase.randomFile.title: .ratio(0.8),
    BodyCase.manyFiles.title: .ratio(0.8),
    BodyCase.lineBreaks.title: .bytesPerSecond(4e9),
    BodyCase.wrongLastByte.title: .bytesPerSecond(4e9),
    BodyCase.repeatedLetter.title: .bytesPerSecond(4e9),
    BodyCase.tinyFields.title: .partsPerSecond(3e6),
]

/// Words on the command line choose the cases whose titles hold one of them.
let words = CommandLine.arguments.dropFirst()
func isChosen(_ title: String) -> Bool {
    words.isEmpty || words.contains { title.contains($0) }
}

print(
    """
    Each figure is the median of \(Comparison.rounds) runs in processor time, the two sides by turns in one process.
    Ratio: Postcard's speed over the yardstick's. A goal is for chunks of 64 KiB.

    """)
print(Comparison.heading(yardstick: "memmem"))
var isMet = true
for bodyCase in BodyCase.all where isChosen(bodyCase.title) {
    let body = bodyCase.make()
    for (chunk, length) in [("1 KiB", 1 << 10), ("64 KiB", 64 << 10), ("1 MiB", 1 << 20)] {
        let comparison = try Comparison.ofParsing(body, chunkLength: length)
        let goal = length == 64 << 10 ? goals[bodyCase.title] : nil
        print(comparison.row(title: bodyCase.title, chunk: chunk, goal: goal))
        isMet = isMet && goal?.isMet(by: comparison) != false
    }
}

let fileCases: [(title: String, content: () -> [UInt8], metadata: MetadataPolicy)] = [
    ("256 MiB file through the layout", { Body.randomBytes(256 << 20) }, .asIs),
    ("256 MiB JPEG without location", { TemporaryFile.jpegWithLocation(pixelBytes: 256 << 20) }, .withoutLocation),
].filter { isChosen($0.title) }
if !fileCases.isEmpty { print("\n" + Comparison.heading(yardstick: "read(2)")) }
for fileCase in fileCases {
    let file = try TemporaryFile(content: fileCase.content())
    let comparison = try Comparison.ofReading(file, metadata: fileCase.metadata)
    let goal = Goal.ratio(1 / 1.1)
    print(comparison.row(title: fileCase.title, chunk: "64 KiB", goal: goal))
    isMet = isMet && goal.isMet(by: comparison)
    try file.remove()
}
if !isMet {
    print("\nA goal was missed. Run it again where the machine was busy.")
}
