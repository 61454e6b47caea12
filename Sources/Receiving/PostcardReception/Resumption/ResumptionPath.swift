/// The paths of unfinished uploads, below the path where forms are posted.
package enum ResumptionPath {
    static let name = "resumable"

    package static func folder(below uploadPath: String) -> String {
        (uploadPath.hasSuffix("/") ? uploadPath : uploadPath + "/") + name
    }

    /// Whether a path is that of an unfinished upload.
    package static func contains(_ path: String, below uploadPath: String) -> Bool {
        let segments = path.split(separator: "/")
        return segments.count > 1 && segments.dropLast() == (uploadPath + "/" + name).split(separator: "/")[...]
    }
}
