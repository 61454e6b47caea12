/// Decides by the name of a property whether it reveals a place, a person or a device. XMP, the texts of PNG files and
/// the keys of QuickTime files name their properties in much the same words.
enum SensitiveName {
    /// What a property reveals; `nil` if it may stay.
    ///
    /// - Parameter name: In ASCII, with or without a prefix and a colon before it.
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
        // "location.ISO6709" is no name of a place.
        if kinds.contains(.position) { kinds.remove(.places) }
        return kinds.isEmpty ? nil : kinds
    }

    /// Whole names, with or without their prefix; empty for those that stay.
    private static let exact: [[UInt8]: RemovedContent] = {
        let names: [(RemovedContent, [String])] = [
            // Not "alt" alone, which in RDF is a list of alternatives.
            (.position, ["lat", "lon", "long", "geo:alt", "geo:point"]),
            (.places, ["city", "state", "coverage"]), (.names, ["source", "credit"]),
            // A picture within the picture, in base64, with its own metadata.
            (.pictures, ["gimage:data"]),
            // Only the version of the format.
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
