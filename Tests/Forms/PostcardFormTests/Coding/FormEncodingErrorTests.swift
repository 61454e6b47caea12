import Foundation
import PostcardForm
import Testing

@Suite("What cannot be encoded as a form")
struct FormEncodingErrorTests {
    /// A value that holds itself.
    final class Endless: Encodable {
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: AnyKey.self)
            try container.encode(self, forKey: AnyKey("a"))
        }
    }

    /// Is two things at once.
    struct Undecided: Encodable {
        func encode(to encoder: any Encoder) throws {
            var list = encoder.unkeyedContainer()
            try list.encode(1)
            var keyed = encoder.container(keyedBy: AnyKey.self)
            try keyed.encode(2, forKey: AnyKey("a"))
        }
    }

    /// Refuses to be encoded.
    struct Refusing: Encodable {
        func encode(to encoder: any Encoder) throws {
            throw EncodingError.invalidValue(
                7, EncodingError.Context(codingPath: encoder.codingPath, debugDescription: "It is seven."))
        }
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let about: String
        let code: FormEncodingError.Code
        let path: String
        let value: String?
        let encode: @Sendable () throws -> MultipartForm

        init(
            _ about: String, _ code: FormEncodingError.Code, _ path: String, _ value: String? = nil,
            of encodable: @autoclosure @escaping @Sendable () -> any Encodable
        ) {
            (self.about, self.code, self.path, self.value) = (about, code, path, value)
            encode = { try MultipartForm(encoding: encodable()) }
        }

        var testDescription: String { about }
    }

    static let cases = [
        Case("a list without a name", .unnamedValue, "", of: [1]),
        Case("a text without a name", .unnamedValue, "", of: "a"),
        Case("an empty key", .invalidKey, "a", "", of: ["a": ["": 1]]),
        Case("a key with brackets", .invalidKey, "a", "b]", of: ["a": ["b]": 1]]),
        Case("an infinity", .invalidValue, "a[b]", "inf", of: ["a": ["b": Double.infinity]]),
        Case("not a number", .invalidValue, "a[1]", "nan", of: ["a": [1, Float.nan]]),
        Case("no decimal number", .invalidValue, "a", "NaN", of: ["a": Decimal.nan]),
        Case("a date too far", .invalidValue, "a", nil, of: ["a": Date.distantFuture.addingTimeInterval(1e12)]),
        Case("the URL of a file", .fileURL, "a[b]", "file:///a.jpg", of: ["a": ["b": URL(filePath: "/a.jpg")]]),
        Case("nil in a list", .emptyElement, "a[1]", of: ["a": [1, nil, 2]]),
        Case("an empty list in a list", .emptyElement, "a[0]", of: ["a": [[], [1]]]),
        Case("two things at once", .contradictoryShapes, "a", of: ["a": Undecided()]),
        Case("two things at once, without a name", .contradictoryShapes, "", of: Undecided()),
        Case("a value that holds itself", .tooDeep, Array(repeating: "[a]", count: 32).reduce("a", +), of: Endless()),
        Case("a type's own refusal", .invalidValue, "a[0]", "7", of: ["a": [Refusing()]]),
    ]

    @Test(arguments: cases)
    func `it is refused, with the field's path and the value`(_ refused: Case) throws {
        let error = try #require(throws: FormEncodingError.self) { try refused.encode() }
        #expect(error.code == refused.code)
        #expect(error.path.hasPrefix(refused.path))
        if refused.code != .tooDeep { #expect(error.path == refused.path) }
        if let value = refused.value {
            #expect(error.value == value)
            #expect(error.debugDescription.contains(value.debugDescription))
        }
    }

    @Test
    func `every kind of error is among them`() {
        #expect(
            Set(Self.cases.map(\.code)) == [
                .unnamedValue, .invalidKey, .invalidValue, .fileURL, .emptyElement, .contradictoryShapes, .tooDeep,
            ])
    }

    @Test(arguments: FormEncoderTests.listStyles.map(\.style))
    func `depth is allowed to the limit and not beyond`(style: FormEncoder.ListStyle) throws {
        var encoder = FormEncoder()
        encoder.listStyle = style
        encoder.maximumDepth = style == .repeatedName ? 2 : 3
        #expect(try encoder.encode(["a": ["b": [1]]]).parts.count == 1)
        encoder.maximumDepth -= 1
        let error = #expect(throws: FormEncodingError.self) { try encoder.encode(["a": ["b": [1]]]) }
        #expect(error?.code == .tooDeep)
    }

    @Test
    func `an error of the value's own passes through unchanged`() {
        struct Own: Error, Equatable {}
        struct Throwing: Encodable {
            func encode(to encoder: any Encoder) throws { throw Own() }
        }
        #expect(throws: Own()) { try MultipartForm(encoding: ["a": Throwing()]) }
    }

    @Test
    func `descriptions keep the value to themselves`() throws {
        let error = try #require(throws: FormEncodingError.self) {
            try MultipartForm(encoding: ["a": URL(filePath: "/secret.jpg")])
        }
        #expect(!"\(error)".contains("secret"))
        #expect(String(reflecting: error).contains("secret"))
    }
}
