/// What a form must be: which fields and files come, how many, how large, of which types and texts.
///
/// One value serves both sides. The sender asks ``check(_:)-(FormLayout)`` before it sends; the receiver feeds a
/// ``FormRuleChecker`` while bytes come in. The same breach is the same ``FormProblem`` on both.
///
/// ```swift
/// let rules = try FormRules(
///     fields: [
///         "name": FormRules.Field(atLeast: 1, maximumCharacters: 40),
///         "kind": FormRules.Field(oneOf: ["dog", "cat"]),
///     ],
///     files: [
///         "petImage": FormRules.File(atLeast: 1, atMost: 2, maximumBytes: 10_000_000, types: [.anyImage])
///     ])
/// try rules.check(form)
/// ```
///
/// The same rules as JSON, for ``init(json:)`` or any decoder:
///
/// ```json
/// {
///   "fields": {
///     "name": {"atLeast": 1, "maximumCharacters": 40},
///     "kind": {"oneOf": ["dog", "cat"]}
///   },
///   "files": {
///     "petImage": {"atLeast": 1, "atMost": 2, "maximumBytes": "10MB", "types": ["image/*"]}
///   }
/// }
/// ```
///
/// Every key may be left out, and an unknown one is an error. A number of bytes is a number, or a text such as
/// `"10MB"` (10,000,000) or `"10MiB"` (10,485,760).
///
/// A file input that the user left empty is sent by browsers as a file without name and content. Such a part
/// counts as not sent.
public struct FormRules: Sendable, Hashable {
    /// The text fields that may come, by name.
    public let fields: [String: Field]

    /// The files that may come, by the name of their field.
    public let files: [String: File]

    /// The most bytes that all files together may have; `nil` for no limit but the receiver's.
    public let maximumBytesOfAllFiles: Int64?

    /// Whether parts may come that no rule names.
    public let otherParts: OtherParts

    /// Whether parts may come that no rule names.
    public enum OtherParts: String, Sendable, Hashable, Codable, CaseIterable {
        /// They break the rules; so it is unless said otherwise.
        case refused
        /// They come under no rule but that for all files together. A name that the rules have for a file is still
        /// refused for a text, and the other way round.
        case allowed
    }

    /// Makes rules.
    ///
    /// - Throws: ``FormRulesError`` where nothing could meet them.
    public init(
        fields: [String: Field] = [:], files: [String: File] = [:], maximumBytesOfAllFiles: Int64? = nil,
        otherParts: OtherParts = .refused
    ) throws(FormRulesError) {
        self.fields = fields
        self.files = files
        self.maximumBytesOfAllFiles = maximumBytesOfAllFiles
        self.otherParts = otherParts
        try validate()
    }
}

extension FormRules {
    /// What a text field must be.
    public struct Field: Sendable, Hashable {
        /// How many must come.
        public var atLeast: Int

        /// How many may come. A repeated field is a mistake more often than not, so it is 1 unless given, or
        /// `atLeast` where that is more.
        public var atMost: Int

        /// The fewest characters of the value. A character is a Unicode scalar, as in JSON Schema: what a reader
        /// sees as one may be several, and a byte count would depend on the language.
        public var minimumCharacters: Int

        /// The most characters of the value; `nil` for no limit but the receiver's. It is
        /// ``defaultMaximumWithPattern`` unless given where there is a pattern, because matching costs time.
        public var maximumCharacters: Int?

        /// What the whole value must match.
        public var pattern: TextPattern?

        /// The values that are allowed, compared byte by byte in UTF-8.
        public var oneOf: [String]?

        /// The most characters of a value that must match a pattern, unless given: 1,000.
        public static let defaultMaximumWithPattern = 1000

        /// Makes a rule. A value that any rule on its text is for must be in UTF-8.
        public init(
            atLeast: Int = 0, atMost: Int? = nil, minimumCharacters: Int = 0, maximumCharacters: Int? = nil,
            pattern: TextPattern? = nil, oneOf: [String]? = nil
        ) {
            self.atLeast = atLeast
            self.atMost = atMost ?? max(1, atLeast)
            self.minimumCharacters = minimumCharacters
            self.maximumCharacters =
                maximumCharacters ?? (pattern == nil ? nil : max(Self.defaultMaximumWithPattern, minimumCharacters))
            self.pattern = pattern
            self.oneOf = oneOf
        }
    }

    /// What a file must be.
    public struct File: Sendable, Hashable {
        /// How many must come.
        public var atLeast: Int

        /// How many may come: 1 unless given, or `atLeast` where that is more.
        public var atMost: Int

        /// The fewest bytes of each.
        public var minimumBytes: Int64

        /// The most bytes of each; `nil` for no limit but the receiver's.
        public var maximumBytes: Int64?

        /// The types that are accepted; `nil` for all.
        ///
        /// Two things are held against them. The part's Content-Type must name an accepted type. And its first 32
        /// bytes must not speak against it: where they are known, they are those of an accepted type, or of the
        /// claimed one's container; where they are not known, the claimed type is one that cannot be recognised
        /// so. A picture that only a wildcard accepts must be recognised, which leaves SVG out, where scripts may
        /// run, until it is named. Nothing is read beyond those bytes: that the rest is a picture is not said.
        public var types: [MediaRange]?

        /// Makes a rule.
        public init(
            atLeast: Int = 0, atMost: Int? = nil, minimumBytes: Int64 = 0, maximumBytes: Int64? = nil,
            types: [MediaRange]? = nil
        ) {
            self.atLeast = atLeast
            self.atMost = atMost ?? max(1, atLeast)
            self.minimumBytes = minimumBytes
            self.maximumBytes = maximumBytes
            self.types = types
        }
    }
}
