/// What cameras' makers write in formats of their own, with secrets in it.
enum Samsung {
    struct Block {
        let type: Int
        let name: String
        let data: [UInt8]

        var bytes: [UInt8] {
            [0, 0] + type.bytes(2).reversed() + name.utf8.count.bytes(4).reversed() + Array(name.utf8) + data
        }
    }

    static let time = Block(type: 0x0A01, name: "Image_UTC_Data", data: Array("1488746908069".utf8))
    static let version = Block(type: 0x0A31, name: "MotionPhoto_Version", data: Array("mpv3".utf8))
    static let country = Block(type: 0x0AA1, name: "MCC_Data", data: Array("450 SECRET".utf8))

    /// Where the video is in a HEIC.
    static let reference = motion(Array("mpv2\0\0\0\0\0\0\0\0".utf8))

    static func motion(_ data: [UInt8]) -> Block { Block(type: 0x0A30, name: "MotionPhoto_Data", data: data) }

    /// - Parameter order: The order of the directory, if it is not that of the blocks.
    static func trailer(_ blocks: [Block], order: [Int]? = nil) -> [UInt8] {
        let data = blocks.map(\.bytes)
        func number(_ value: Int) -> [UInt8] { value.bytes(4).reversed() }
        let entries = (order ?? Array(blocks.indices)).flatMap { index in
            data[index][..<4] + number(data[index...].reduce(0) { $0 + $1.count }) + number(data[index].count)
        }
        let directory = Array("SEFH".utf8) + number(107) + number(blocks.count) + entries
        return data.flatMap(\.self) + directory + number(directory.count) + Array("SEFT".utf8)
    }

    /// A trailer with the data of a motion photo, and with a picture.
    static func trailer(_ motion: [UInt8]) -> [UInt8] {
        let blocks = [
            time, country, Self.motion(motion), Block(type: 0x0C61, name: "Info", data: Array("SECRET".utf8)), version,
            Block(type: 1, name: "DualShot_1", data: JPEG.file()),
        ]
        return trailer(blocks, order: [3, 1, 5, 0, 4, 2])
    }
}

enum AppleNote {
    /// The identifier that the video of a Live Photo has too.
    static let identifier = "KEPT0000-0000-0000-0000-000000000000"

    static let bytes: [UInt8] = {
        let exif = EXIF(isLittleEndian: false)
        let entries = [
            EXIF.Entry(tag: 1, type: 9, count: 1, value: 14.bytes(4)), exif.text(0x0B, "SECRET burst"),
            exif.text(0x11, identifier),
            EXIF.Entry(tag: 0x21, type: 10, count: 1, value: 5.bytes(4) + 7.bytes(4)),
            exif.text(0x2B, "SECRET photo"),
        ]
        // Behind the mark, a version and the order of bytes.
        return Array("Apple iOS\0".utf8) + [0, 1] + Array("MM".utf8) + exif.directory(entries, at: 14)
    }()
}
