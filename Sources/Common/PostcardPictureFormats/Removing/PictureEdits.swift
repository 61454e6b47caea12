/// The bytes of a file to overwrite while it is read, in ascending order and without overlaps.
package struct PictureEdits: Sendable, Hashable {
    struct Edit: Sendable, Hashable {
        let offset: Int64
        let length: Int64
        /// The new bytes, as many as they replace; empty for zeros.
        let bytes: [UInt8]

        var end: Int64 { offset + length }
    }

    private var edits: [Edit] = []

    /// The kinds of overwritten content.
    package private(set) var removed: RemovedContent = []

    /// Whether the file is a picture that also contains a video.
    package private(set) var hasVideo = false

    package init() {}

    /// Sorts edits, and joins those that write only zeros. Throws ``ScanError`` if other edits overlap.
    init(
        _ unordered: [Edit], removed: RemovedContent = [], hasVideo: Bool = false
    ) throws(ScanError) {
        (self.removed, self.hasVideo) = (removed, hasVideo)
        for edit in unordered.sorted(by: { ($0.offset, $0.length) < ($1.offset, $1.length) }) where edit.length > 0 {
            guard let last = edits.last, edit.offset <= last.end, last.bytes.isEmpty, edit.bytes.isEmpty else {
                if let last = edits.last, edit.offset < last.end {
                    throw ScanError(at: edit.offset, "two pieces of metadata overlap")
                }
                edits.append(edit)
                continue
            }
            let end = max(last.end, edit.end)
            edits[edits.count - 1] = Edit(offset: last.offset, length: end - last.offset, bytes: [])
        }
    }

    package var isEmpty: Bool { edits.isEmpty }

    /// The ranges of bytes to overwrite, counted from the start of the file.
    package var ranges: [Range<Int64>] { edits.map { $0.offset..<$0.end } }

    /// Applies the edits to a piece of the file that begins at an offset. Pieces may be of any size and in any order.
    package func apply(to buffer: UnsafeMutableRawBufferPointer, at offset: Int64) {
        var (low, high) = (0, edits.count)
        while low < high {
            let middle = (low + high) / 2
            if edits[middle].end > offset { high = middle } else { low = middle + 1 }
        }
        let end = offset + Int64(buffer.count)
        for edit in edits[low...] {
            guard edit.offset < end else { return }
            // Both numbers are within the buffer, so they fit an Int.
            let from = Int(clamping: max(edit.offset, offset) - offset)
            let upTo = Int(clamping: min(edit.end, end) - offset)
            let target = UnsafeMutableRawBufferPointer(rebasing: buffer[from..<upTo])
            if edit.bytes.isEmpty {
                target.initializeMemory(as: UInt8.self, repeating: 0)
            } else {
                let skipped = Int(clamping: offset + Int64(from) - edit.offset)
                target.copyBytes(from: edit.bytes[skipped..<(skipped + target.count)])
            }
        }
    }
}

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
    /// Data in an unknown format, which may contain anything.
    static let unknown = RemovedContent(rawValue: 1 << 5)
    static let other = RemovedContent(rawValue: 1 << 6)
    /// Free space, and bytes that nothing in the file refers to.
    static let unused = RemovedContent(rawValue: 1 << 7)
    static let pictures = RemovedContent(rawValue: 1 << 8)
    static let video = RemovedContent(rawValue: 1 << 9)
    /// Bytes after a picture or video that are neither a picture nor a video.
    static let trailer = RemovedContent(rawValue: 1 << 10)

    /// The kinds that are not metadata.
    package static let content: RemovedContent = [.pictures, .video, .trailer]

    private static let phrases: [(RemovedContent, String)] = [
        (.position, "its position"), (.places, "names of places"), (.names, "names of persons or devices"),
        (.serialNumbers, "serial numbers"), (.makerNote, "the camera maker's own data"),
        (.unknown, "data in unknown formats"), (.other, "other metadata"), (.unused, "unused bytes"),
        (.pictures, "further pictures"), (.video, "its video"), (.trailer, "the data after its end"),
    ]

    /// A phrase for each kind, such as "its video", to complete the sentence "It is sent without …".
    package var phrases: [String] { Self.phrases.filter { contains($0.0) }.map(\.1) }
}

/// Decides by a property's name whether it reveals a place, a person or a device. XMP, PNG and QuickTime have similar
/// names.
enum SensitiveName {
    /// The kind of content that a property reveals; `nil` if the property may stay. The name is in ASCII, with or
    /// without a prefix.
    static func kind(of name: ArraySlice<UInt8>) -> RemovedContent? {
        let full = name.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
        let local = Array(full[(full.lastIndex(of: UInt8(ascii: ":")).map { $0 + 1 } ?? 0)...])
        if let kind = exact[local] ?? exact[full] { return kind.isEmpty ? nil : kind }
        var kinds: RemovedContent = []
        for start in full.indices {
            for (part, kind) in partsByFirstByte[Int(full[start] & 31)]
            where part.count <= full.count - start && (0..<part.count).allSatisfy({ full[start + $0] == part[$0] }) {
                kinds.formUnion(kind)
            }
        }
        // "location.ISO6709" is a position, not the name of a place.
        if kinds.contains(.position) { kinds.remove(.places) }
        return kinds.isEmpty ? nil : kinds
    }

    /// The kinds of properties by their full name, with or without a prefix. The set is empty for harmless properties.
    private static let exact: [[UInt8]: RemovedContent] = {
        let names: [(RemovedContent, [String])] = [
            // "alt" alone is left out, because it is a list of alternatives in RDF.
            (.position, ["lat", "lon", "long", "geo:alt", "geo:point"]),
            (.places, ["city", "state", "coverage"]), (.names, ["source", "credit"]),
            // A picture in base64 inside the picture, with its own metadata.
            (.pictures, ["gimage:data"]),
            // The version of the GPS format.
            (.other, ["gpsversionid"]),
            // The program that wrote the file, and the maker whose gallery plays a motion photo.
            ([], ["creatortool", "motionphotoowner"]),
        ]
        let kinds = names.flatMap { kind, names in names.map { (Array($0.utf8), kind) } }
        return Dictionary(kinds, uniquingKeysWith: { first, _ in first })
    }()

    private static let parts: [([UInt8], RemovedContent)] = {
        let parts: [(RemovedContent, [String])] = [
            (
                .position,
                [
                    "gps", "latitude", "longitude", "longtitude", "altitude", "geotag", "geoloc", "geopos", "iso6709",
                    "location.accuracy",
                ]
            ),
            (.places, ["location", "country", "province"]),
            (
                .names,
                [
                    "region", "person", "facename", "creator", "author", "artist", "photographer", "byline", "owner",
                    "contributor", "contact", "email", "nickname", "captionwriter",
                ]
            ),
            (.serialNumbers, ["serial"]), (.makerNote, ["makernote"]), (.pictures, ["thumbnail"]),
            (.unknown, ["raw profile"]),
        ]
        return parts.flatMap { kind, parts in parts.map { (Array($0.utf8), kind) } }
    }()

    private static let partsByFirstByte: [[([UInt8], RemovedContent)]] = (0..<32).map { index in
        parts.filter { Int($0.0[0] & 31) == index }
    }
}
