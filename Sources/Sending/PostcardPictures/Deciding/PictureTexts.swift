import PostcardFoundation

/// The sentences of this module's string catalog, for the users of an app.
enum PictureTexts {
    /// The sentence in the user's language.
    ///
    /// - Parameters:
    ///   - key: Its key in `Resources/Localizable.xcstrings`.
    ///   - text: The sentence in English, which is returned if the catalog does not have the key, and on Linux.
    static func text(_ key: String, else text: String) -> String {
        #if canImport(Darwin)
        let found = Bundle.module.localizedString(forKey: key, value: nil, table: nil)
        // A key that is not found is returned unchanged.
        return found == key ? text : found
        #else
        return text
        #endif
    }
}
