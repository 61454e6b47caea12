import Foundation
import Testing

@testable import PostcardPictureFormats

@Suite struct XMPTests {
    /// What has to go is between ‹ and ›.
    static let packets = [
        "<a ‹exif:GPSLatitude='1'› b='2'/>", "<a ‹GPSLatitude = \"1>2\"› />", "<a>‹<x:City>Seoul</x:City>›b</a>",
        "<a>‹<x:City/>›b</a>", "<a ‹geo:lat='1'› ‹geo:alt='2'›/>", "<a ‹DRONE:GPSLONGTITUDE='1'›/>",
        // An element within one of the same name, and attributes of what goes.
        "<a>‹<Location c='d'><Location>e</Location><b City='f'/></Location>›g</a>",
        // What is only like them.
        "<a x:CreatorTool='t' c:Opacity='1' OpCamera:MotionPhotoOwner='o'/>", "<rdf:Alt><rdf:li>a</rdf:li></rdf:Alt>",
        "<a xmlns:location='u'/>",
        // What is no element.
        "<!-- <City> --><a><![CDATA[<City>]]></a><?City?>",
        "<a b='서울'>‹<x:City>Busan</x:City>›</a>",
        // Text outside of all elements, also if nothing else is left.
        "‹a: b›‹<City>c</City>›\0", "\u{FEFF}‹a›<b/>‹ c›", "\u{FEFF}‹<City>c</City>›", "<a/> \n<b/>",
        "", "  \n", "\0\0\0\0",
    ]

    private static func withoutLocation(_ bytes: [UInt8]) throws -> [UInt8] {
        var removed: RemovedContent = []
        return try XMPPacket.withoutLocation(bytes, &removed)
    }

    private static func withoutMarks(_ packet: String) -> String {
        packet.filter { $0 != "‹" && $0 != "›" }
    }

    private static func blanked(_ packet: String) -> String {
        var isRemoved = false
        return String(
            packet.compactMap { character in
                if character == "‹" || character == "›" {
                    isRemoved = character == "‹"
                    return nil
                }
                return isRemoved ? " " : character
            })
    }

    @Test(arguments: packets) func `a property goes with its name and value, and leaves spaces`(packet: String) throws {
        let result = try Self.withoutLocation(Array(Self.withoutMarks(packet).utf8))
        #expect(String(decoding: result, as: UTF8.self) == Self.blanked(packet))
        #expect(try Self.withoutLocation(result) == result)
    }

    @Test(arguments: [String.Encoding.utf16BigEndian, .utf16LittleEndian, .utf32BigEndian, .utf32LittleEndian])
    func `other encodings are read alike`(encoding: String.Encoding) throws {
        for packet in Self.packets where packet.hasPrefix("<") {
            for mark in ["", "\u{FEFF}"] {
                let bytes = Array(try #require((mark + Self.withoutMarks(packet)).data(using: encoding)))
                let result = Data(try Self.withoutLocation(bytes))
                #expect(result == (mark + Self.blanked(packet)).data(using: encoding), "\(packet)")
            }
        }
        // Characters that are not ASCII, in a property and next to it.
        let packet = "<a b='서울' x:City='서울'/>"
        let bytes = Array(try #require(packet.data(using: encoding)))
        let result = Data(try Self.withoutLocation(bytes))
        #expect(result == "<a b='서울'            />".data(using: encoding))
    }
}
