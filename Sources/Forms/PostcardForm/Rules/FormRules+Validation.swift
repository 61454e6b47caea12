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
