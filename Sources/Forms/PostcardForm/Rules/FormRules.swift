/// What a form must contain: which fields and files, how many, how large, with which types and texts.
///
/// One value serves both sides. The sender calls ``check(_:)-(FormLayout)`` before sending, and the receiver uses a
/// ``FormRuleChecker`` while receiving. Both report the same ``FormProblem``.
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
/// Rules for the files alone refuse the text beside them, and the other way round, unless ``otherParts`` allows it:
///
/// ```swift
/// let photos = FormRules.File(atMost: 5, types: [.anyImage])
/// let rules = try FormRules(files: ["petImage": photos], otherParts: .allowed)
/// ```
///
/// Every key may be left out, and an unknown one is an error. A number of bytes is a number, or a text such as
/// `"10MB"` (10,000,000) or `"10MiB"` (10,485,760).
///
/// A file input that the user left empty is sent by browsers as a file without name and content. Such a part
/// counts as not sent.
public struct FormRules: Sendable, Hashable {
    /// The allowed text fields, by name.
    public let fields: [String: Field]

    /// The allowed files, by the name of their field.
    public let files: [String: File]

    /// The maximum number of bytes that all files together may have; `nil` for no limit but the receiver's.
    public let maximumBytesOfAllFiles: Int64?

    /// Whether parts with other names are allowed.
    public let otherParts: OtherParts

    /// Whether parts with other names are allowed.
    public enum OtherParts: String, Sendable, Hashable, Codable, CaseIterable {
        /// Other parts break the rules. This is the default.
        case refused
        /// Other parts have no rule except the one for all files together. A file's name in the rules is still refused
        /// for a text, and the other way round.
        case allowed
    }

    /// Makes rules.
    ///
    /// - Throws: ``FormRulesError`` if no form can meet them.
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
        /// The minimum number.
        public var atLeast: Int

        /// The maximum number. Defaults to 1, because a repeated field is usually a mistake, or to `atLeast` if that is
        /// more.
        public var atMost: Int

        /// The minimum number of characters of the value. A character is a Unicode scalar, as in JSON Schema: what a
        /// reader sees as one may be several, and a byte count would depend on the language.
        public var minimumCharacters: Int

        /// The maximum number of characters; `nil` for the receiver's own limit. With a pattern it defaults to
        /// ``defaultMaximumWithPattern``, because matching costs time.
        public var maximumCharacters: Int?

        /// What the whole value must match.
        public var pattern: TextPattern?

        /// The values that are allowed, compared byte by byte in UTF-8.
        public var oneOf: [String]?

        /// The default maximum number of characters of a value with a pattern: 1,000.
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
        /// The minimum number.
        public var atLeast: Int

        /// The maximum number. Defaults to 1, or to `atLeast` if that is more.
        public var atMost: Int

        /// The minimum size of each, in bytes.
        public var minimumBytes: Int64

        /// The maximum size of each, in bytes; `nil` for no limit but the receiver's.
        public var maximumBytes: Int64?

        /// The types that are accepted, such as `["image/jpeg", "video/*"]`; `nil` for all.
        ///
        /// Two things are checked. The part's Content-Type must be an accepted type. And the first 32 bytes must not
        /// contradict it: if their format is known, it is an accepted type, or the container of the claimed one; if it
        /// is unknown, the claimed type is one that cannot be recognised. A picture that only a wildcard accepts must
        /// be recognised; this excludes SVG, which can run scripts, if it is not listed. Later bytes are not checked:
        /// the rest may not be a picture.
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

extension FormRules {
    /// Throws if no form can meet the rules. Names are checked in order, so that the error is the same each time.
    func validate() throws(FormRulesError) {
        for (name, field) in fields.sorted(by: { $0.key < $1.key }) {
            try Self.check(name: name, in: "fields")
            do { try field.validate() } catch { throw error.within(["fields", name]) }
        }
        for (name, file) in files.sorted(by: { $0.key < $1.key }) {
            try Self.check(name: name, in: "files")
            do { try file.validate() } catch { throw error.within(["files", name]) }
        }
        if let maximumBytesOfAllFiles, maximumBytesOfAllFiles < 0 {
            throw .negative("maximumBytesOfAllFiles")
        }
    }

    private static func check(name: String, in place: String) throws(FormRulesError) {
        if name.isEmpty {
            throw FormRulesError(
                .invalidValue, "A name is empty.", at: [place], advice: "Write the name that the part is sent with.")
        }
    }
}

extension FormRules.Field {
    fileprivate func validate() throws(FormRulesError) {
        try FormRulesError.checkCounts(atLeast: atLeast, atMost: atMost)
        if minimumCharacters < 0 { throw .negative("minimumCharacters") }
        if let maximumCharacters {
            if maximumCharacters < 0 { throw .negative("maximumCharacters") }
            if maximumCharacters < minimumCharacters {
                throw .contradiction("maximumCharacters", below: "minimumCharacters")
            }
        }
        if pattern != nil, maximumCharacters == nil {
            throw FormRulesError(
                .invalidValue, "A pattern is only safe with a maximum length.", at: ["maximumCharacters"],
                advice: "Say how many characters the value may have.")
        }
        if let oneOf { try validate(oneOf) }
    }

    private func validate(_ values: [String]) throws(FormRulesError) {
        if values.isEmpty {
            throw FormRulesError(
                .contradiction, "No value is allowed.", at: ["oneOf"], advice: "List the values, or leave the key out.")
        }
        for (index, value) in values.enumerated() {
            let count = value.unicodeScalars.count
            let fits =
                count >= minimumCharacters && count <= maximumCharacters ?? .max
                && pattern?.matches(value) ?? true
            if !fits {
                throw FormRulesError(
                    .contradiction, "The value breaks the rules beside it.", at: ["oneOf", "\(index)"],
                    advice: "Leave the value out, or change the pattern and the lengths.")
            }
        }
    }
}

extension FormRules.File {
    fileprivate func validate() throws(FormRulesError) {
        try FormRulesError.checkCounts(atLeast: atLeast, atMost: atMost)
        if minimumBytes < 0 { throw .negative("minimumBytes") }
        if let maximumBytes {
            if maximumBytes < 0 { throw .negative("maximumBytes") }
            if maximumBytes < minimumBytes { throw .contradiction("maximumBytes", below: "minimumBytes") }
        }
        if let types, types.isEmpty {
            throw FormRulesError(
                .contradiction, "No type is accepted.", at: ["types"], advice: "List the types, or leave the key out.")
        }
    }
}

extension FormRulesError {
    fileprivate static func checkCounts(atLeast: Int, atMost: Int) throws(FormRulesError) {
        if atLeast < 0 { throw .negative("atLeast") }
        if atMost < 1 {
            throw FormRulesError(
                .contradiction, "None may be sent.", at: ["atMost"],
                advice: "Write 1 or more, or leave the name out of the rules if none may be sent.")
        }
        if atMost < atLeast { throw .contradiction("atMost", below: "atLeast") }
    }

    fileprivate static func negative(_ key: String) -> FormRulesError {
        FormRulesError(.invalidValue, "It is below 0.", at: [key], advice: "Write 0 or more, or leave the key out.")
    }

    fileprivate static func contradiction(_ key: String, below other: String) -> FormRulesError {
        FormRulesError(.contradiction, "It is less than \(other).", at: [key], advice: "Raise it, or lower \(other).")
    }
}
