/// What the entries of TIFF directories hold, by their tags (TIFF 6.0, Exif 3.0, DNG 1.7).
enum TIFFTags {
    /// Whether an entry has to go.
    static func isRemoved(_ tag: Int64, _ removal: MetadataScan.Removal) -> Bool {
        switch removal {
        case .location: sensitive.contains(tag)
        case .everything: sensitive.contains(tag) || !isNeeded(tag)
        }
    }

    /// Positions, persons, devices, and what is written in a format of the camera's own.
    private static let sensitive: Set<Int64> = [
        0x8825,  // the directory with the GPS position
        0x927C,  // MakerNote
        0x013B, 0x013C,  // Artist, HostComputer
        0x9C9D,  // XPAuthor
        0xA420,  // ImageUniqueID, in which some cameras have their own
        0xA430, 0xA431, 0xA435, 0xA437, 0xA438,  // owner, serial numbers of body and lens, photographer, editor
        0xC62F, 0xC634, 0xC68C,  // of DNG: the serial number, private data, the file that it was made of
        0xC6F5,  // of DNG: further color profiles, whose directories count offsets from their own starts
        0xCD41,  // JUMBF: who signed the picture, which would no longer be valid
        0x830E, 0x8480, 0x8482, 0x85D8, 0x87AF, 0x87B0, 0x87B1,  // GeoTIFF
        0xA480, 0xC69C,  // GDAL's metadata, and how pixels are projected onto the earth
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
