import Foundation
import PostcardForm
import Testing

@Suite("Rules as JSON")
struct FormRulesJSONTests {
    static let json = #"""
        {
          "fields": {
            "name": {"atLeast": 1, "maximumCharacters": 40},
            "phone": {"pattern": "\\d{2,3}-\\d{3,4}-\\d{4}", "minimumCharacters": 2},
            "kind": {"oneOf": ["dog", "cat"], "atMost": 3}
          },
          "files": {
            "petImage": {"atLeast": 1, "atMost": 2, "maximumBytes": "10MB", "types": ["image/*", "application/PDF"]},
            "note": {"minimumBytes": 1, "maximumBytes": "2 KiB"}
          },
          "maximumBytesOfAllFiles": 15000000,
          "otherParts": "allowed"
        }
        """#

    static func rules() throws -> FormRules {
        try FormRules(
            fields: [
                "name": FormRules.Field(atLeast: 1, maximumCharacters: 40),
                "phone": FormRules.Field(minimumCharacters: 2, pattern: TextPattern(#"\d{2,3}-\d{3,4}-\d{4}"#)),
                "kind": FormRules.Field(atMost: 3, oneOf: ["dog", "cat"]),
            ],
            files: [
                "petImage": FormRules.File(
                    atLeast: 1, atMost: 2, maximumBytes: 10_000_000, types: [.anyImage, MediaRange(.pdf)]),
                "note": FormRules.File(minimumBytes: 1, maximumBytes: 2048),
            ], maximumBytesOfAllFiles: 15_000_000, otherParts: .allowed)
    }

    @Test
    func `a written file says what the code says`() throws {
        #expect(try FormRules(json: Data(Self.json.utf8)) == Self.rules())
    }

    @Test
    func `the example of the documentation says the same twice`() throws {
        let rules = try FormRules(
            fields: [
                "name": FormRules.Field(atLeast: 1, maximumCharacters: 40),
                "kind": FormRules.Field(oneOf: ["dog", "cat"]),
            ],
            files: [
                "petImage": FormRules.File(atLeast: 1, atMost: 2, maximumBytes: 10_000_000, types: [.anyImage])
            ])
        let json = #"""
            {
              "fields": {
                "name": {"atLeast": 1, "maximumCharacters": 40},
                "kind": {"oneOf": ["dog", "cat"]}
              },
              "files": {
                "petImage": {"atLeast": 1, "atMost": 2, "maximumBytes": "10MB", "types": ["image/*"]}
              }
            }
            """#
        #expect(try FormRules(json: Data(json.utf8)) == rules)
    }

    @Test
    func `written and read again they are the same`() throws {
        for rules in [try Self.rules(), try FormRules(), try FormRules(json: Data("{}".utf8))] {
            #expect(try FormRules(json: JSONEncoder().encode(rules)) == rules)
            #expect(try JSONDecoder().decode(FormRules.self, from: JSONEncoder().encode(rules)) == rules)
        }
    }

    @Test
    func `what is left out has a default`() throws {
        let rules = try FormRules(json: Data(#"{"fields": {"a": {"atLeast": 2}, "b": {"pattern": "x"}}}"#.utf8))
        #expect(rules.fields["a"]?.atMost == 2)
        #expect(rules.fields["b"]?.atMost == 1)
        #expect(rules.fields["b"]?.maximumCharacters == FormRules.Field.defaultMaximumWithPattern)
        #expect(rules.otherParts == .refused)
    }

    /// JSON that is refused, with the place and words of the error.
    static let refused: [(json: String, path: String, words: String)] = [
        ("", "", "not JSON"),
        ("{", "", "not JSON"),
        ("[]", "", "an object"),
        (#"{"field": {}}"#, "", "fields, files, maximumBytesOfAllFiles, otherParts"),
        (#"{"fields": {"a": {"required": true}}}"#, "fields.a", "atLeast"),
        (#"{"files": {"a": {"maxBytes": 1}}}"#, "files.a", "maximumBytes"),
        (#"{"files": {"a": []}}"#, "files.a", "an object"),
        (#"{"files": {"": {}}}"#, "files", "empty"),
        (#"{"fields": {"a": {"atLeast": "1"}}}"#, "fields.a.atLeast", "whole number"),
        (#"{"fields": {"a": {"atLeast": null}}}"#, "fields.a.atLeast", "whole number"),
        (#"{"fields": {"a": {"atLeast": -1}}}"#, "fields.a.atLeast", "below 0"),
        (#"{"fields": {"a": {"atMost": 0}}}"#, "fields.a.atMost", "1 or more"),
        (#"{"fields": {"a": {"atLeast": 3, "atMost": 2}}}"#, "fields.a.atMost", "less than atLeast"),
        (#"{"fields": {"a": {"pattern": "("}}}"#, "fields.a.pattern", "not closed"),
        (#"{"fields": {"a": {"oneOf": []}}}"#, "fields.a.oneOf", "No value"),
        (#"{"fields": {"a": {"oneOf": "b"}}}"#, "fields.a.oneOf", "list"),
        (#"{"fields": {"a": {"oneOf": ["b", "cc"], "maximumCharacters": 1}}}"#, "fields.a.oneOf.1", "beside it"),
        (#"{"fields": {"a": {"oneOf": ["b"], "pattern": "c"}}}"#, "fields.a.oneOf.0", "beside it"),
        (
            #"{"fields": {"a": {"minimumCharacters": 2, "maximumCharacters": 1}}}"#, "fields.a.maximumCharacters",
            "less than"
        ),
        (#"{"files": {"a": {"maximumBytes": "10 potatoes"}}}"#, "files.a.maximumBytes", "number of bytes"),
        (#"{"files": {"a": {"maximumBytes": 1.5}}}"#, "files.a.maximumBytes", "number of bytes"),
        (#"{"files": {"a": {"maximumBytes": -1}}}"#, "files.a.maximumBytes", "below 0"),
        (#"{"files": {"a": {"maximumBytes": 1, "minimumBytes": 2}}}"#, "files.a.maximumBytes", "less than"),
        (#"{"files": {"a": {"types": []}}}"#, "files.a.types", "No type"),
        (#"{"files": {"a": {"types": ["image/png", "jpeg"]}}}"#, "files.a.types.1", "image/jpeg"),
        (#"{"files": {"a": {"types": ["*/png"]}}}"#, "files.a.types.0", "not a media type"),
        (#"{"files": {"a": {"types": ["text/plain; charset=utf-8"]}}}"#, "files.a.types.0", "not a media type"),
        (#"{"maximumBytesOfAllFiles": -1}"#, "maximumBytesOfAllFiles", "below 0"),
        (#"{"otherParts": "maybe"}"#, "otherParts", "maybe"),
    ]

    @Test(arguments: refused)
    func `nonsense is refused, and the error says where`(json: String, path: String, words: String) {
        let error = #expect(throws: FormRulesError.self) { try FormRules(json: Data(json.utf8)) }
        #expect(error?.path.joined(separator: ".") == path)
        #expect(error?.description.contains(words) == true, "\(error?.description ?? "")")
    }
}
