/// Photoshop's image resources, which contain IPTC records and XMP among much else (Adobe Photoshop File Formats
/// Specification, "Image Resource Blocks").
enum PhotoshopResources {
    static func withoutLocation(_ bytes: [UInt8], _ removed: inout RemovedContent) throws(BlockFault) -> [UInt8] {
        var result = bytes
        var index = 0
        var digest: Range<Int>?
        while index < bytes.count {
            let rest = bytes[index...]
            // Padding at the end.
            if rest.allSatisfy({ $0 == 0 }) { break }
            guard rest.count >= 8, signatures.contains(where: { rest.starts(with: $0.utf8) }) else {
                throw BlockFault(at: index, "a resource of Photoshop was expected here")
            }
            let identifier = rest.dropFirst(4).prefix(2).bigEndian
            // A name, its length before it, and then the data: all with an even number of bytes.
            let size = index + 6 + (Int(bytes[index + 6]) + 2) / 2 * 2
            guard size + 4 <= bytes.count else { throw BlockFault(at: index, "a resource of Photoshop is cut off") }
            let count = bytes[size..<(size + 4)].bigEndian
            guard count <= Int64(bytes.count - size - 4) else {
                throw BlockFault(at: index, "a resource of Photoshop is said to have \(count) bytes, which do not fit")
            }
            let data = (size + 4)..<(size + 4 + Int(clamping: count))
            do throws(BlockFault) {
                if let rewritten = try rewritten(identifier, Array(bytes[data]), &removed) {
                    result.replaceSubrange(data, with: rewritten)
                }
                if identifier == 0x0425 { digest = data }
            } catch {
                throw BlockFault(at: data.lowerBound + error.index, error.reason)
            }
            index = min(data.upperBound + data.count % 2, bytes.count)
        }
        // That of the IPTC records, which are now others.
        if let digest, result != bytes { result.replaceSubrange(digest, with: repeatElement(0, count: digest.count)) }
        return result
    }

    private static let signatures = ["8BIM", "MeSa", "PHUT", "AgHg", "DCSR"]

    /// The new data of the same length; `nil` if it stays.
    private static func rewritten(
        _ identifier: Int64, _ data: [UInt8], _ removed: inout RemovedContent
    ) throws(BlockFault) -> [UInt8]? {
        switch identifier {
        case 0x0404: return try IPTCRecords.withoutLocation(data, &removed)
        case 0x0424: return try XMPPacket.withoutLocation(data, &removed)
        // EXIF again, in two versions.
        case 0x0422, 0x0423:
            if data.contains(where: { $0 != 0 }) { removed.insert(.other) }
            return [UInt8](repeating: 0, count: data.count)
        default: return nil
        }
    }
}

/// IPTC's records of a picture (IPTC-NAA Information Interchange Model 4.2).
enum IPTCRecords {
    static func withoutLocation(_ bytes: [UInt8], _ removed: inout RemovedContent) throws(BlockFault) -> [UInt8] {
        // Some programs write them into a TIFF as numbers of four bytes, the last byte first.
        guard bytes.count >= 4, bytes.count % 4 == 0, bytes[0] != 0x1C, bytes[3] == 0x1C else {
            return try rewritten(bytes, &removed)
        }
        return swapped(try rewritten(swapped(bytes), &removed))
    }

    private static func swapped(_ bytes: [UInt8]) -> [UInt8] { bytes.indices.map { bytes[$0 ^ 3] } }

    /// Moves what stays to the front and fills the rest with zeros, as other programs do.
    private static func rewritten(_ bytes: [UInt8], _ removed: inout RemovedContent) throws(BlockFault) -> [UInt8] {
        var kept: [UInt8] = []
        var index = 0
        while index < bytes.count {
            let rest = bytes[index...]
            if rest.allSatisfy({ $0 == 0 }) { break }
            guard rest.count >= 5, bytes[index] == 0x1C else {
                throw BlockFault(at: index, "an IPTC record was expected here")
            }
            let (record, dataset) = (bytes[index + 1], bytes[index + 2])
            var header = 5
            var count = rest.dropFirst(3).prefix(2).bigEndian
            if count & 0x8000 != 0 {
                // A longer one: its length has as many bytes as these two say.
                let size = Int(clamping: count & 0x7FFF)
                guard size <= 4, rest.count >= 5 + size else {
                    throw BlockFault(at: index, "an IPTC record has a length that cannot be read")
                }
                count = rest.dropFirst(5).prefix(size).bigEndian
                header += size
            }
            guard count <= Int64(rest.count - header) else {
                throw BlockFault(at: index, "an IPTC record is said to have \(count) bytes, which do not fit")
            }
            let end = index + header + Int(clamping: count)
            if record == 2, let kind = kinds[dataset] { removed.insert(kind) } else { kept += bytes[index..<end] }
            index = end
        }
        return kept + [UInt8](repeating: 0, count: bytes.count - kept.count)
    }

    /// Of the record for applications: locations of the content, by-line and its title, city, sublocation, state,
    /// country's code and name, credit, source, contact, writer.
    private static let kinds: [UInt8: RemovedContent] = [
        26: .places, 27: .places, 80: .names, 85: .names, 90: .places, 92: .places, 95: .places, 100: .places,
        101: .places, 110: .names, 115: .names, 118: .names, 122: .names,
    ]
}
