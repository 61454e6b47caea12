/// Decides by the name of a property whether it reveals a place, a person or a device. XMP, the texts of PNG files and
/// the keys of QuickTime files name their properties in much the same words.
enum SensitiveName {
    /// - Parameter name: In ASCII, with or without a prefix and a colon before it.
    static func matches(_ name: ArraySlice<UInt8>) -> Bool {
        let full = name.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
        let local = full[(full.lastIndex(of: UInt8(ascii: ":")).map { $0 + 1 } ?? 0)...]
        if exact.contains(Array(local)) || exact.contains(full) { return true }
        // The program that wrote the file.
        if local.elementsEqual("creatortool".utf8) { return false }
        for start in full.indices {
            for part in partsByFirstByte[Int(full[start] & 31)]
            where part.count <= full.count - start && (0..<part.count).allSatisfy({ full[start + $0] == part[$0] }) {
                return true
            }
        }
        return false
    }

    private static let exact = Set(
        [
            // Not "alt" alone, which in RDF is a list of alternatives.
            "lat", "lon", "long", "geo:alt", "geo:point", "city", "state", "source", "credit", "coverage",
            // A picture within the picture, in base64, with its own metadata.
            "gimage:data",
        ].map { Array($0.utf8) })

    private static let parts = [
        "gps", "latitude", "longitude", "longtitude", "altitude", "location", "geotag", "geoloc", "geopos", "iso6709",
        "country", "province", "region", "person", "facename", "creator", "author", "artist", "photographer", "byline",
        "owner", "contributor", "contact", "email", "nickname", "captionwriter", "serial", "makernote", "thumbnail",
        "raw profile",
    ].map { Array($0.utf8) }

    private static let partsByFirstByte: [[[UInt8]]] = (0..<32).map { index in
        parts.filter { Int($0[0] & 31) == index }
    }
}
