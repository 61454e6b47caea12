/// EXIF in the bytes of another file, from its TIFF structure on.
enum EXIFBlock {
    /// EXIF with the same offsets and without what must be removed.
    ///
    /// - Parameters:
    ///   - block: EXIF from its TIFF structure on, or zeros.
    ///   - inheritance: What the scan of the EXIF takes over from its picture's scan.
    ///   - removed: What was removed is added to it.
    static func rewritten(
        _ block: [UInt8], _ inheritance: MetadataScan.Inheritance, _ removed: inout RemovedContent
    ) throws(BlockFault) -> [UInt8] {
        // Other programs clear it in the same way.
        if block.allSatisfy({ $0 == 0 }) { return block }
        guard let tiff = TIFFBlock(block) else { throw BlockFault(at: 0, "the EXIF has no TIFF header") }
        if inheritance.removal == .everything { return orientation(of: tiff) }
        do throws(PictureFault) {
            // A thumbnail in it may have EXIF too.
            return try MetadataScan.applied(inheritance, to: block, &removed) { scan throws(PictureFault) in
                try scan.scanTIFF(as: .exif)
            }
        } catch {
            throw BlockFault(at: Int(clamping: error.offset), error.finding)
        }
    }

    /// EXIF with the orientation alone, filled with zeros.
    private static func orientation(of tiff: TIFFBlock) -> [UInt8] {
        let order = tiff.order
        let entries = order.encoded(1, bytes: 2) + order.orientationEntry(tiff.orientation ?? 1)
        let bytes = tiff.bytes[..<4] + order.encoded(8, bytes: 4) + entries + [0, 0, 0, 0]
        let count = tiff.bytes.count
        // One that has no room for an entry had no orientation.
        return bytes.count > count
            ? [UInt8](repeating: 0, count: count) : bytes + [UInt8](repeating: 0, count: count - bytes.count)
    }
}

extension TIFFByteOrder {
    /// An entry with the orientation of a picture.
    func orientationEntry(_ value: Int64) -> [UInt8] {
        encoded(0x0112, bytes: 2) + encoded(3, bytes: 2) + encoded(1, bytes: 4) + encoded(value, bytes: 2) + [0, 0]
    }

    /// An entry with the version of EXIF, for a directory that would be empty otherwise.
    var exifVersionEntry: [UInt8] {
        encoded(0x9000, bytes: 2) + encoded(7, bytes: 2) + encoded(4, bytes: 4) + Array("0232".utf8)
    }
}
