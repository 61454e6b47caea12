import PostcardServer

/// The keys of the store's objects, below the bucket's prefix.
enum ObjectName {
    static let records = "records/"
    static let files = "files/"
    static let keys = "keys/"
    static let unfinished = "unfinished/"
    static let probes = "probes/"

    // MARK: - Records

    /// Listings are in the order of keys, so the newest record has the first.
    static func record(_ id: UploadID) -> String { records + UploadID.inverted(id.text) }

    static func id(ofRecord key: String) -> UploadID? {
        guard key.hasPrefix(records) else { return nil }
        return UploadID(UploadID.inverted(key.dropFirst(records.count)))
    }

    // MARK: - Files

    /// The folder of an upload's files, named after the random part of its identifier: the time is chosen at the
    /// commit.
    static func folder(of id: UploadID) -> String { "\(files)\(id.randomText)/" }

    static func file(_ index: Int, of id: UploadID) -> String { "\(folder(of: id))\(index)" }

    /// The random part of the identifier of a file's upload.
    static func randomText(ofFile key: String) -> Substring? {
        key.split(separator: "/").dropFirst().first
    }

    // MARK: - Keys

    static func folder(of digest: String) -> String { "\(keys)\(digest)/" }

    /// The object that holds the key's record. When that is deleted, the next generation follows.
    static func key(_ digest: String, generation: Int) -> String { folder(of: digest) + padded(Int64(generation), 8) }

    static func generation(ofKey key: String) -> Int? { key.split(separator: "/").last.flatMap { Int($0) } }

    // MARK: - Unfinished uploads

    static func folder(ofUnfinished id: String) -> String { "\(unfinished)\(id)/" }
    static func chunk(at offset: Int64, ofUnfinished id: String) -> String {
        folder(ofUnfinished: id) + "chunks/" + padded(offset, 20)
    }
    static func form(ofUnfinished id: String) -> String { folder(ofUnfinished: id) + "form" }
    static func length(ofUnfinished id: String) -> String { folder(ofUnfinished: id) + "length" }
    static func response(ofUnfinished id: String) -> String { folder(ofUnfinished: id) + "response" }

    private static func padded(_ number: Int64, _ digits: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(digits - text.count, 0)) + text
    }
}
