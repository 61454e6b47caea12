package import Foundation

/// The files of the package that the tests read: documents, scripts, sources.
package enum Repository {
    private static let folder = URL(filePath: #filePath).appending(path: "../../..").standardized

    /// - Parameter path: A path in the repository, such as `Tests/Receivers/start`.
    package static func url(_ path: String) -> URL { folder.appending(path: path) }

    /// The paths of the sources of all modules, by the modules' names: `PostcardForm` is `Sources/Forms/PostcardForm`.
    package static let modules: [String: String] = {
        var modules: [String: String] = [:]
        for wing in names(in: "Sources") {
            for module in names(in: "Sources/\(wing)") { modules[module] = "Sources/\(wing)/\(module)" }
        }
        return modules
    }()

    private static func names(in folder: String) -> [String] {
        let names =
            (try? FileManager.default.contentsOfDirectory(atPath: url(folder).path(percentEncoded: false))) ?? []
        return names.filter { !$0.hasPrefix(".") }
    }

    /// - Parameter module: The module's name, such as `PostcardClient`.
    package static func sources(of module: String) -> URL {
        url(modules[module] ?? "Sources/\(module)")
    }
}
