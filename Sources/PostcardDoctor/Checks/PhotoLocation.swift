/// Finds the GPS position in a photo's EXIF (Exif 3.0 §4.6.3), and where it stands.
struct PhotoLocation {
    private let bytes: ArraySlice<UInt8>
    private let isLittleEndian: Bool

    /// Where the directory with the position is named, counted from the EXIF's start; `nil` where there is none.
    ///
    /// - Parameter exif: The TIFF structure of the EXIF, or its beginning.
    static func offset(inEXIF exif: [UInt8]) -> Int? {
        PhotoLocation(exif[...])?.directory
    }

    private init?(_ bytes: ArraySlice<UInt8>) {
        guard bytes.count >= 8 else { return nil }
        self.bytes = bytes
        switch Array(bytes.prefix(2)) {
        case Array("II".utf8): isLittleEndian = true
        case Array("MM".utf8): isLittleEndian = false
        default: return nil
        }
    }

    /// The entry that names the directory of the position, where that holds a latitude.
    private var directory: Int? {
        guard let first = number(at: 4, bytes: 4), let entry = entry(tag: 0x8825, in: first),
            let directory = number(at: entry + 8, bytes: 4), self.entry(tag: 2, in: directory) != nil
        else { return nil }
        return entry
    }

    private func entry(tag: Int, in directory: Int) -> Int? {
        guard let count = number(at: directory, bytes: 2) else { return nil }
        for index in 0..<min(count, 512) {
            let entry = directory + 2 + 12 * index
            guard let found = number(at: entry, bytes: 2) else { return nil }
            if found == tag { return entry }
        }
        return nil
    }

    private func number(at offset: Int, bytes count: Int) -> Int? {
        guard offset >= 0, offset <= bytes.count - count else { return nil }
        let found = bytes.dropFirst(offset).prefix(count)
        return isLittleEndian
            ? found.reversed().reduce(0) { $0 << 8 | Int($1) } : found.reduce(0) { $0 << 8 | Int($1) }
    }
}
