import Foundation
import PostcardForm
import Testing

@Suite("What cannot be decoded from a form")
struct FormDecodingErrorTests {
    /// A type that holds itself, and could never be decoded.
    final class Endless: Decodable {
        let a: Endless
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let lines: [String]
        let code: FormDecodingError.Code
        let path: String
        let value: String?
        let decode: @Sendable (ReceivedForm) throws -> Void
        let testDescription: String

        init<Value: Decodable & SendableMetatype>(
            _ lines: String..., as type: Value.Type, _ code: FormDecodingError.Code, _ path: String,
            _ value: String? = nil
        ) {
            (self.lines, self.code, self.path, self.value) = (lines, code, path, value)
            decode = { _ = try FormDecoder().decode(type, from: $0) }
            testDescription = "\(lines.map { $0.prefix(30) }) as \(type)"
        }
    }

    typealias One<Value> = [String: Value]
    typealias Two<Value> = [String: [String: Value]]
    struct Pet: Decodable { var name: String }
    struct Wanted<Value: Decodable>: Decodable { var a: Value }

    static let deep = "a" + String(repeating: "[a]", count: 32)

    static let texts: [Case] = [
        Case(as: Wanted<String>.self, .missing, "a"),
        Case(as: Wanted<FormFile>.self, .missing, "a"),
        Case("a=@:", as: Wanted<Data>.self, .missing, "a"),
        Case(as: Wanted<RoundTripTests.Size>.self, .missing, "a"),
        Case(as: Wanted<RoundTripTests.Shape>.self, .missing, "a"),
        Case("a[1][x]=1", as: Wanted<[Pet]>.self, .missing, "a[1][name]"),
        Case("a[b]=x", as: Two<Int>.self, .invalidValue, "a[b]", "x"),
        Case("a=1", "a=", as: One<[Int]>.self, .invalidValue, "a", ""),
        Case("a[]=1", "a[]=x", as: One<[Int]>.self, .invalidValue, "a[]", "x"),
        Case("a[4]=x", as: One<[Int]>.self, .invalidValue, "a[4]", "x"),
        Case("a= 1", as: One<Int>.self, .invalidValue, "a", " 1"),
        Case("a=1.0", as: One<Int>.self, .invalidValue, "a", "1.0"),
        Case("a=0x1p3", as: One<Double>.self, .invalidValue, "a", "0x1p3"),
        Case("a=nan", as: One<Double>.self, .invalidValue, "a", "nan"),
        Case("a=-inf", as: One<Float>.self, .invalidValue, "a", "-inf"),
        Case("a=.", as: One<Double>.self, .invalidValue, "a", "."),
        Case("a=1e", as: One<Double>.self, .invalidValue, "a", "1e"),
        Case("a=12abc", as: One<Decimal>.self, .invalidValue, "a", "12abc"),
        Case("a=maybe", as: One<Bool>.self, .invalidValue, "a", "maybe"),
        Case("a=x", as: One<UUID>.self, .invalidValue, "a", "x"),
        Case("a=", as: One<URL>.self, .invalidValue, "a", ""),
        Case("a=yesterday", as: One<Date>.self, .invalidValue, "a", "yesterday"),
        Case("a=?", as: One<Data>.self, .invalidValue, "a", "?"),
        Case("a[b]=huge", as: Two<RoundTripTests.Size>.self, .invalidValue, "a[b]", "huge"),
        Case("a[x]=1", "a[y]=2", as: One<RoundTripTests.Shape>.self, .invalidValue, "a"),
        Case("a=300", as: One<Int8>.self, .outOfRange, "a", "300"),
        Case("a[b]=-1", as: Two<UInt>.self, .outOfRange, "a[b]", "-1"),
        Case("a=9223372036854775808", as: One<Int>.self, .outOfRange, "a", "9223372036854775808"),
        Case("a=1e999", as: One<Double>.self, .outOfRange, "a", "1e999"),
        Case("a=1e39", as: One<Float>.self, .outOfRange, "a", "1e39"),
        Case("a=1e200", as: One<Decimal>.self, .outOfRange, "a", "1e200"),
        Case(
            "a=1234567890123456789012345678901234567890.1", as: One<Decimal>.self, .outOfRange, "a",
            "1234567890123456789012345678901234567890.1"),
    ]

    static let shapes: [Case] = [
        Case("a=1", "a=2", as: One<Int>.self, .repeated, "a"),
        Case("a[0]=1", "a[0]=2", as: One<[Int]>.self, .repeated, "a[0]"),
        Case("a=@f:1", "a=@g:2", as: One<FormFile>.self, .repeated, "a"),
        Case("a=1", "a[b]=2", as: One<Int>.self, .contradictoryShapes, "a"),
        Case("a=1", "a[b]=2", as: Two<Int>.self, .contradictoryShapes, "a"),
        Case("a[c]=", "a[c][b]=2", as: One<One<[Int]?>>.self, .contradictoryShapes, "a[c]"),
        Case("a=1", "a[]=2", as: One<[Int]>.self, .contradictoryShapes, "a"),
        Case("a[]=1", "a[0]=2", as: One<[Int]>.self, .contradictoryShapes, "a"),
        Case("a[]=1", "a[b]=2", as: Two<Int>.self, .contradictoryShapes, "a"),
        Case("a[][name]=1", as: One<[Pet]>.self, .wrongShape, "a"),
        Case("a[b]=1", as: One<[Int]>.self, .wrongShape, "a"),
        Case("a[01]=1", as: One<[Int]>.self, .wrongShape, "a"),
        Case("a[-1]=1", as: One<[Int]>.self, .wrongShape, "a"),
        Case("a[9223372036854775808]=1", as: One<[Int]>.self, .wrongShape, "a"),
        Case("a[]=1", as: One<Int>.self, .wrongShape, "a"),
        Case("a[]=1", as: Two<Int>.self, .wrongShape, "a"),
        Case("a=1", as: One<Pet>.self, .wrongShape, "a", "1"),
        Case("a=@f:1", as: One<String>.self, .wrongShape, "a"),
        Case("a=1", as: One<FormFile>.self, .wrongShape, "a", "1"),
        Case("a=1", as: Int.self, .wrongShape, ""),
    ]

    static let limits: [Case] = [
        Case("\(deep)=1", as: One<String>.self, .tooDeep, deep),
        Case("\(deep)[]=1", "b=1", as: Wanted<String?>.self, .tooDeep, "\(deep)[]"),
        Case(as: Endless.self, .tooDeep, deep),
    ]

    @Test(arguments: texts + shapes + limits)
    func `it is refused, with the field's path and what was sent`(_ refused: Case) throws {
        let form = try ReceivedForm(refused.lines)
        let error = try #require(throws: FormDecodingError.self) { try refused.decode(form) }
        #expect(error.code == refused.code)
        #expect(error.path == refused.path)
        #expect(error.value == refused.value)
        #expect((400..<500).contains(error.status.code))
        #expect(error.advice != nil)
    }

    @Test
    func `the part and the byte where it stands are named`() throws {
        let form = try ReceivedForm(["a=1", "b=x"])
        let error = try #require(throws: FormDecodingError.self) {
            try FormDecoder().decode([String: Int].self, from: form)
        }
        #expect(error.partIndex == 1)
        #expect(error.offset == form.parts[1].header.offset)
    }

    @Test
    func `bytes that are not UTF-8 are no text`() throws {
        var body = Data("--XX\r\nContent-Disposition: form-data; name=a\r\n\r\n".utf8)
        body += Data([0xE9]) + Data("\r\n--XX--".utf8)
        let form = try ReceivedForm(contentType: "multipart/form-data; boundary=XX", body: body)
        let error = #expect(throws: FormDecodingError.self) {
            try FormDecoder().decode([String: String].self, from: form)
        }
        #expect(error?.code == .notUTF8)
        #expect(error?.value == nil)
    }

    @Test
    func `keys are allowed to the limit and not beyond, wanted or not`() throws {
        let form = try ReceivedForm(["a[b]=1", "a[b]=2", "c=1"])
        var decoder = FormDecoder()
        decoder.maximumKeys = 3
        #expect(throws: Never.self) { try decoder.decode([String: Ignored].self, from: form) }
        decoder.maximumKeys = 2
        let error = #expect(throws: FormDecodingError.self) {
            try decoder.decode([String: Ignored].self, from: form)
        }
        #expect(error?.code == .tooManyKeys)
        #expect(error?.path == "c")
    }

    struct Ignored: Decodable {
        init(from decoder: any Decoder) {}
    }

    @Test
    func `depth is allowed to the limit and not beyond`() throws {
        var decoder = FormDecoder()
        decoder.maximumDepth = 2
        #expect(try decoder.decode([String: [Int]].self, "a[]=1", "a[]=2") == ["a": [1, 2]])
        let error = #expect(throws: FormDecodingError.self) {
            try decoder.decode([String: [[Int]]].self, "a[0][]=1")
        }
        #expect(error?.code == .tooDeep)
    }

    @Test(arguments: [("[a", 0), ("[a]", 1), ("[", 0), ("[]", 1)])
    func `a name of thousands of brackets is refused or ignored`(brackets: String, count: Int) throws {
        let name = "a" + String(repeating: brackets, count: 5000)
        let form = try ReceivedForm(["\(name)=1"])
        if count == 0 {
            #expect(try FormDecoder().decode(Wanted<String?>.self, from: form).a == nil)
        } else {
            let error = try #require(throws: FormDecodingError.self) {
                try FormDecoder().decode(Wanted<String?>.self, from: form)
            }
            #expect(error.code == .tooDeep)
            #expect(error.message.utf8.count < 200)
        }
    }

    @Test
    func `errors are the standard library's while a type decodes itself`() throws {
        struct Lenient: Decodable {
            var number: Int
            var missing: String

            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: AnyKey.self)
                do {
                    number = try container.decode(Int.self, forKey: AnyKey("number"))
                } catch DecodingError.dataCorrupted {
                    number = -1
                }
                do {
                    missing = try container.decode(String.self, forKey: AnyKey("missing"))
                } catch DecodingError.keyNotFound(let key, _) {
                    missing = key.stringValue
                }
            }
        }
        let lenient = try FormDecoder().decode(Lenient.self, "number=x")
        #expect(lenient.number == -1)
        #expect(lenient.missing == "missing")
    }

    @Test
    func `an error of the value's own passes through unchanged`() {
        struct Own: Error, Equatable {}
        struct Throwing: Decodable {
            init(from decoder: any Decoder) throws { throw Own() }
        }
        #expect(throws: Own()) { try FormDecoder().decode(Throwing.self, "a=1") }
    }

    static let discreet = [
        Case("a=secret", as: One<Int>.self, .invalidValue, "a", "secret"),
        Case("a=secret", as: One<RoundTripTests.Size>.self, .invalidValue, "a", "secret"),
        Case("a=secret", as: One<Pet>.self, .wrongShape, "a", "secret"),
    ]

    @Test(arguments: discreet)
    func `descriptions keep what was sent to themselves`(_ refused: Case) throws {
        let error = try #require(throws: FormDecodingError.self) { try refused.decode(ReceivedForm(refused.lines)) }
        #expect(!"\(error)".contains("secret"))
        #expect(String(reflecting: error).contains("secret"))
    }

    @Test
    func `a description says which field, what is wrong with it, and what to send instead`() throws {
        let error = try #require(throws: FormDecodingError.self) {
            try FormDecoder().decode(Two<Int>.self, "a[b]=x")
        }
        #expect("\(error)" == #""a[b]" is not a whole number. Send digits alone, such as 42."#)
    }

    @Test
    func `every kind of error is among those that are tested`() {
        let elsewhere: Set<FormDecodingError.Code> = [.notUTF8, .tooManyKeys, .fileUnreadable]
        let codes = Set((Self.texts + Self.shapes + Self.limits).map(\.code))
        #expect(
            codes.union(elsewhere) == [
                .missing, .invalidValue, .outOfRange, .notUTF8, .repeated, .wrongShape, .contradictoryShapes, .tooDeep,
                .tooManyKeys, .fileUnreadable,
            ])
    }
}
