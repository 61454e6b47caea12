import Bodies
import PostcardForm

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A file that is read in two ways.
struct TemporaryFile {
    let length: Int
    private let url: URL

    /// What either way reads at a time.
    private static let chunkLength = 64 << 10

    init(content: [UInt8]) throws {
        length = content.count
        url = FileManager.default.temporaryDirectory.appending(path: "postcard-\(UUID().uuidString).bin")
        try Data(content).write(to: url)
    }

    /// A JPEG whose EXIF has a position, and that is otherwise random.
    static func jpegWithLocation(pixelBytes: Int) -> [UInt8] {
        let directory: [UInt8] = [1, 0, 0x25, 0x88, 4, 0, 1, 0, 0, 0, 26, 0, 0, 0, 0, 0, 0, 0]
        let location: [UInt8] = [1, 0, 2, 0, 5, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        let exif = Array("Exif\0\0II*\0".utf8) + [8, 0, 0, 0] + directory + location
        return [0xFF, 0xD8, 0xFF, 0xE1, 0, UInt8(exif.count + 2)] + exif + [0xFF, 0xDA, 0, 2]
            + Body.randomBytes(pixelBytes) + [0xFF, 0xD9]
    }

    func remove() throws {
        try FileManager.default.removeItem(at: url)
    }

    /// Reads the file with `read(2)` and nothing else.
    ///
    /// - Returns: How many bytes came.
    func readPlainly() throws -> Int {
        let descriptor = open(url.path, O_RDONLY)
        guard descriptor >= 0 else { throw CocoaError(.fileReadUnknown) }
        defer { close(descriptor) }
        return try withBuffer { buffer in
            var total = 0
            while true {
                let count = read(descriptor, buffer.baseAddress, buffer.count)
                guard count >= 0 else { throw CocoaError(.fileReadUnknown) }
                if count == 0 { return total }
                total += count
            }
        }
    }

    /// Lays out a form of the file and reads its body.
    ///
    /// - Returns: How many bytes came.
    func readAsForm(metadata: MetadataPolicy) throws -> Int {
        var form = MultipartForm()
        form.append(fileAt: url, named: "petImage", metadata: metadata)
        let reader = try form.layout().reader()
        return try withBuffer { buffer in
            var total = 0
            while true {
                let count = try reader.read(into: buffer)
                if count == 0 { return total }
                total += count
            }
        }
    }

    private func withBuffer(_ use: (UnsafeMutableRawBufferPointer) throws -> Int) rethrows -> Int {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.chunkLength, alignment: 4096)
        defer { buffer.deallocate() }
        return try use(buffer)
    }
}
