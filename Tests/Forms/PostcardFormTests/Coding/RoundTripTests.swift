import Foundation
import PostcardForm
import Testing

@Suite("What is encoded is decoded from the bytes that were sent")
struct RoundTripTests {
    enum Size: String, Codable { case small, large }
    enum Level: Int, Codable { case low = 1, high }

    indirect enum Shape: Codable, Equatable, Sendable {
        case square
        case circle(radius: Double)
        case named(String, tags: [String])
        case framed(Shape)
        case maybe(Int?)
    }

    struct Everything: Codable, Equatable {
        var text = "초코\r\n\"둘\" & 셋=%22"
        var empty = ""
        var optionalText: String? = ""
        var none: String?
        var isTrue = true
        var isFalse = false
        var optionalBool: Bool? = false
        var bytes: [UInt8] = [0, 255]
        var small = Int8.min
        var large = UInt64.max
        var huge = Int128.min
        var hugeUnsigned = UInt128.max
        var optionalHuge: Int128? = 7
        var doubles = [0.1, -0.0, .pi, .leastNonzeroMagnitude, .greatestFiniteMagnitude, 1e16, 5]
        var floats: [Float] = [0.1, .greatestFiniteMagnitude, .leastNonzeroMagnitude]
        var decimal = Decimal(string: "-12345678901234567890.0123456789")
        var date = Date(timeIntervalSince1970: 1_795_176_000.25)
        var url = URL(string: "https://example.com/a?b=c&d=%20#e")
        var identifier = UUID()
        var data = Data([0, 1, 254, 255, 13, 10])
        var emptyData = Data()
        var file = FormFile(Data("\r\n--".utf8), filename: "제주 \"바다\".jpg", contentType: .png)
        var files = [
            FormFile(Data([1]), filename: "1", contentType: .jpeg), FormFile(Data(), filename: "2", contentType: .gif),
        ]
        var noFiles: [FormFile] = []
        var size = Size.large
        var level: Level? = .high
        var shapes: [Shape] = [
            .square, .circle(radius: 1.5), .named("a", tags: []), .named("b", tags: ["x", "y"]), .framed(.square),
            .maybe(nil), .maybe(3),
        ]
        var matrix = [[1, 2], [3]]
        var byName = ["한글 키": [1, 2], "b.c": [3]]
        var byNumber = [7: "seven", -1: "minus one"]
        var noNames: [String: Int] = [:]
        var inner = Inner()
        var inners = [Inner(), Inner(a: 1), Inner(b: ["c": Inner.Deepest(d: true)])]

        struct Inner: Codable, Equatable {
            var a: Int?
            var b: [String: Deepest] = [:]

            struct Deepest: Codable, Equatable { var d: Bool }
        }
    }

    static let encoders: [FormEncoder] = {
        var encoders: [FormEncoder] = []
        for (list, _) in FormEncoderTests.listStyles {
            for (bool, data) in [
                (FormEncoder.BoolStyle.trueFalse, FormEncoder.DataStyle.file), (.oneZero, .base64),
            ] {
                var encoder = FormEncoder()
                (encoder.listStyle, encoder.boolStyle, encoder.dataStyle) = (list, bool, data)
                encoders.append(encoder)
            }
        }
        return encoders
    }()

    @Test(arguments: encoders)
    func `a value of everything, in every style`(encoder: FormEncoder) throws {
        let value = Everything()
        let form = try ReceivedForm(sent: encoder.encode(value))
        #expect(try FormDecoder().decode(Everything.self, from: form) == value)
    }

    @Test(arguments: Everything().shapes)
    func `an enumeration as the whole form`(shape: Shape) throws {
        let form = try ReceivedForm(sent: FormEncoder().encode(shape))
        #expect(try FormDecoder().decode(Shape.self, from: form) == shape)
    }

    @Test
    func `checkboxes that are not checked are not sent and come back as false`() throws {
        var encoder = FormEncoder()
        encoder.boolStyle = .checkbox
        let sent = ["a": true, "b": false]
        #expect(try encoder.lines(sent) == ["a=on"])
        struct Boxes: Decodable { var a, b: Bool }
        let boxes = try FormDecoder().decode(Boxes.self, from: ReceivedForm(sent: encoder.encode(sent)))
        #expect(boxes.a && !boxes.b)
    }

    class Animal: Codable {
        var name = "초코"

        init() {}
    }

    final class Dog: Animal {
        var tricks = ["sit", "roll"]

        override init() { super.init() }

        private enum Keys: String, CodingKey { case tricks, parent }

        required init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Keys.self)
            try super.init(from: try container.superDecoder())
            var list = try container.nestedUnkeyedContainer(forKey: .tricks)
            var tricks: [String] = []
            while !list.isAtEnd { tricks.append(try list.decode(String.self)) }
            self.tricks = tricks
        }

        override func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Keys.self)
            try super.encode(to: container.superEncoder())
            var list = container.nestedUnkeyedContainer(forKey: .tricks)
            for trick in tricks { try list.encode(trick) }
        }
    }

    @Test
    func `a class and its superclass, with containers asked for by hand`() throws {
        let dog = Dog()
        dog.name = "보리"
        dog.tricks = ["spin"]
        #expect(try FormEncoder().lines(dog) == ["super[name]=보리", "tricks=spin"])
        let decoded = try FormDecoder().decode(Dog.self, from: ReceivedForm(sent: FormEncoder().encode(dog)))
        #expect(decoded.name == "보리")
        #expect(decoded.tricks == ["spin"])
    }

    /// Encodes itself in nested containers of every kind.
    struct ByHand: Codable, Equatable {
        var first = 1
        var second = "둘"

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: AnyKey.self)
            var list = container.nestedUnkeyedContainer(forKey: AnyKey("list"))
            var keyed = list.nestedContainer(keyedBy: AnyKey.self)
            try keyed.encode(first, forKey: AnyKey("first"))
            var inner = list.nestedUnkeyedContainer()
            try inner.encode(second)
            var single = list.superEncoder().singleValueContainer()
            try single.encode(true)
        }

        init() {}

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: AnyKey.self)
            var list = try container.nestedUnkeyedContainer(forKey: AnyKey("list"))
            #expect(list.count == 3)
            let keyed = try list.nestedContainer(keyedBy: AnyKey.self)
            first = try keyed.decode(Int.self, forKey: AnyKey("first"))
            var inner = try list.nestedUnkeyedContainer()
            second = try inner.decode(String.self)
            #expect(try list.superDecoder().singleValueContainer().decode(Bool.self))
            #expect(list.isAtEnd)
        }
    }

    @Test
    func `nested containers of every kind`() throws {
        #expect(
            try FormEncoder().lines(["a": ByHand()]) == ["a[list][0][first]=1", "a[list][1]=둘", "a[list][2]=true"])
        let form = try ReceivedForm(sent: FormEncoder().encode(["a": ByHand()]))
        #expect(try FormDecoder().decode([String: ByHand].self, from: form) == ["a": ByHand()])
    }

    /// Encodes and decodes itself in ways that the compiler does not.
    struct Unusual: Codable, Equatable {
        var first: Int? = 1
        var second = 2
        var numbers: [Int?] = [1, nil, 3]

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: AnyKey.self)
            try container.encode("forgotten", forKey: AnyKey("none"))
            try container.encodeNil(forKey: AnyKey("none"))
            try container.encode("forgotten", forKey: AnyKey("text"))
            try container.encode("", forKey: AnyKey("text"))
            var inner = container.nestedContainer(keyedBy: AnyKey.self, forKey: AnyKey("inner"))
            try inner.encode(first, forKey: AnyKey("first"))
            var again = container.nestedContainer(keyedBy: AnyKey.self, forKey: AnyKey("inner"))
            try again.encode(second, forKey: AnyKey("second"))
            try container.encode(numbers.map { $0.map(String.init) ?? "" }, forKey: AnyKey("numbers"))
        }

        init() {}

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: AnyKey.self)
            #expect(container.allKeys.map(\.stringValue) == ["text", "inner", "numbers"])
            #expect(try container.decodeNil(forKey: AnyKey("none")))
            #expect(try Self.decodeIfPresent(String.self, in: container, "text") == "")
            #expect(try Self.decodeIfPresent(Int.self, in: container, "text") == nil)
            #expect(try Self.decodeIfPresent(String.self, in: container, "none") == nil)
            let inner = try container.nestedContainer(keyedBy: AnyKey.self, forKey: AnyKey("inner"))
            first = try inner.decodeIfPresent(Int.self, forKey: AnyKey("first"))
            second = try inner.decode(Int.self, forKey: AnyKey("second"))
            var list = try container.nestedUnkeyedContainer(forKey: AnyKey("numbers"))
            numbers = []
            while !list.isAtEnd { numbers.append(try list.decodeNil() ? nil : try list.decode(Int.self)) }
            #expect(throws: DecodingError.self) { try list.decode(Int.self) }
        }

        private static func decodeIfPresent<Value: Decodable>(
            _ type: Value.Type, in container: KeyedDecodingContainer<AnyKey>, _ key: String
        ) throws -> Value? {
            try container.decodeIfPresent(type, forKey: AnyKey(key))
        }
    }

    @Test
    func `keys that are set twice, containers that are asked for twice, nil that is asked for`() throws {
        #expect(
            try FormEncoder().lines(Unusual()) == [
                "text=", "inner[first]=1", "inner[second]=2", "numbers=1", "numbers=", "numbers=3",
            ])
        let form = try ReceivedForm(sent: FormEncoder().encode(Unusual()))
        #expect(try FormDecoder().decode(Unusual.self, from: form) == Unusual())
    }
}
