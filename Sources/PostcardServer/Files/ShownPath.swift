import SystemPackage

extension FilePath {
    /// The path, for messages, with only the beginning of the name of a folder in `.unfinished`: knowing the identifier
    /// of an unfinished upload is enough to append to the upload.
    var shown: String {
        var names = string.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        for index in names.indices.dropFirst() where names[index - 1] == ".unfinished" {
            names[index] = "\(names[index].prefix(6))…"
        }
        return names.joined(separator: "/")
    }
}
