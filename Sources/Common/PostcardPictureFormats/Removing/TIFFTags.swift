/// What the entries of TIFF directories hold, by their tags (TIFF 6.0, Exif 3.0, DNG 1.7).
enum TIFFTags {
    /// What an entry is that has to go; `nil` if it stays.
    static func kind(ofRemoved tag: Int64, _ removal: MetadataScan.Removal) -> RemovedContent? {
        sensitive[tag] ?? (removal == .everything && !isNeeded(tag) ? .other : nil)
    }

    /// Positions, persons, devices, and what is written in a format of the camera's own.
    private static let sensitive: [Int64: RemovedContent] = [
        // The directory with the GPS position, and GeoTIFF.
        0x8825: .position, 0x830E: .position, 0x8480: .position, 0x8482: .position, 0x85D8: .position,
        0x87AF: .position, 0x87B0: .position, 0x87B1: .position,
        // Artist, HostComputer, XPAuthor, the owner, the photographer, the editor.
        0x013B: .names, 0x013C: .names, 0x9C9D: .names, 0xA430: .names, 0xA437: .names, 0xA438: .names,
        // Of the body, the lens, and in DNG.
        0xA431: .serialNumbers, 0xA435: .serialNumbers, 0xC62F: .serialNumbers,
        // MakerNote, and private data in DNG.
        0x927C: .makerNote, 0xC634: .makerNote,
        // ImageUniqueID, in which some cameras have their own, and in DNG the name of the file that it was made of.
        0xA420: .other, 0xC68C: .other,
        // Further color profiles of DNG, whose directories count offsets from their own starts.
        0xC6F5: .other,
        // JUMBF: who signed the picture, which would no longer be valid.
        0xCD41: .unknown,
        // GDAL's metadata, and how pixels are projected onto the earth.
        0xA480: .unknown, 0xC69C: .unknown,
    ]

    /// Whether the pixels of a picture cannot be decoded or would look different without an entry.
    private static func isNeeded(_ tag: Int64) -> Bool {
        switch tag {
        case 0x00FE...0x010A,  // size, samples, compression, colors
            0x0111...0x011C,  // strips, orientation, resolution, how planes are stored
            0x0122...0x0125, 0x0128, 0x012D, 0x013D...0x0145,  // codings, resolution's unit, transfer, colors, tiles
            0x014A,  // the directories of further pictures
            0x014C, 0x014E, 0x0150, 0x0152...0x0156,  // inks, transparency, the format of samples
            0x015B, 0x0200...0x0209, 0x0211...0x0214,  // JPEG, YCbCr
            0x828D, 0x828E,  // the color filters of a sensor
            0x8773:  // the color profile
            true
        // DNG says there how a raw picture is rendered, and a reader refuses a DNG without its camera's model.
        case 0xC612...0xC7FF, 0xCD2C...0xCD60:
            !remarks.contains(tag)
        default:
            false
        }
    }

    /// What DNG has in the same range and no reader needs for the pixels: names of files and of settings, programs,
    /// times and labels.
    private static let remarks: Set<Int64> = [
        0xC68B, 0xC6FE, 0xC716, 0xC717, 0xC718, 0xC719, 0xC71B, 0xC763, 0xC764, 0xC772, 0xC789, 0xC7A1,
    ]
}
