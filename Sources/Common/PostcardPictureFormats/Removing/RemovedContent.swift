/// What kinds of content were removed from a file.
package struct RemovedContent: OptionSet, Sendable, Hashable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    package static let position = RemovedContent(rawValue: 1 << 0)
    package static let places = RemovedContent(rawValue: 1 << 1)
    static let names = RemovedContent(rawValue: 1 << 2)
    static let serialNumbers = RemovedContent(rawValue: 1 << 3)
    static let makerNote = RemovedContent(rawValue: 1 << 4)
    /// Data whose format is not known here, and which may hold anything.
    static let unknown = RemovedContent(rawValue: 1 << 5)
    static let other = RemovedContent(rawValue: 1 << 6)
    /// Bytes that nothing in the file names, and free space.
    static let unused = RemovedContent(rawValue: 1 << 7)
    static let pictures = RemovedContent(rawValue: 1 << 8)
    static let video = RemovedContent(rawValue: 1 << 9)
    /// What follows the end of a picture or a video, and is neither.
    static let trailer = RemovedContent(rawValue: 1 << 10)

    /// What is not metadata.
    package static let content: RemovedContent = [.pictures, .video, .trailer]

    private static let phrases: [(RemovedContent, String)] = [
        (.position, "its position"), (.places, "names of places"), (.names, "names of persons or devices"),
        (.serialNumbers, "serial numbers"), (.makerNote, "the camera maker's own data"),
        (.unknown, "data in unknown formats"), (.other, "other metadata"), (.unused, "unused bytes"),
        (.pictures, "further pictures"), (.video, "its video"), (.trailer, "the data after its end"),
    ]

    /// Each kind as the end of "It is sent without …".
    package var phrases: [String] { Self.phrases.filter { contains($0.0) }.map(\.1) }
}
