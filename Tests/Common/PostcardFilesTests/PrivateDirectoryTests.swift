import Foundation
import PostcardFiles
import PostcardTestSupport
import SystemPackage
import Testing

/// A private directory next to files and directories that it must not reach.
private struct Surroundings {
    let folder: TemporaryFolder
    let root: FilePath
    let directory: PrivateDirectory

    static let content = "canary"

    init() throws {
        folder = try TemporaryFolder()
        root = FilePath(folder.path)
        directory = try PrivateDirectory(root.appending("private"))
        _ = try folder.file("canary", Self.content.utf8)
        try makeDirectory("outside")
        _ = try folder.file("outside/canary", Self.content.utf8)
    }

    func makeDirectory(_ name: String, permissions: Int = 0o755) throws {
        try FileManager.default.createDirectory(atPath: path(name), withIntermediateDirectories: false)
        // Set afterwards, because the process's mask applies to what is made.
        try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: path(name))
    }

    func link(_ name: String, to target: String) throws {
        try FileManager.default.createSymbolicLink(atPath: path(name), withDestinationPath: path(target))
    }

    func hardLink(_ name: String, to target: String) throws {
        try FileManager.default.linkItem(atPath: path(target), toPath: path(name))
    }

    func path(_ name: String) -> String { root.string + "/" + name }

    func exists(_ name: String) -> Bool {
        (try? FileManager.default.attributesOfItem(atPath: path(name))) != nil
    }

    func permissions(_ name: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path(name))[.posixPermissions] as? Int
    }

    func text(_ name: String) throws -> String { try String(contentsOfFile: path(name), encoding: .utf8) }

    /// Whether everything outside is unchanged.
    var isOutsideUntouched: Bool {
        get throws {
            try text("canary") == Self.content && text("outside/canary") == Self.content
                && permissions("outside") == 0o755
        }
    }
}

/// A call that opens or makes something under a name.
private struct Call: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let perform: @Sendable (PrivateDirectory, FilePath.Component) throws -> Void

    static let open = Call(testDescription: "open") { try $0.open($1).close() }
    static let openOrCreate = Call(testDescription: "openOrCreate") { try $0.openOrCreate($1).close() }
    static let create = Call(testDescription: "create") { _ = try $0.create($1) }
    static let lock = Call(testDescription: "lock") { _ = try $0.lock($1) }
    static let directory = Call(testDescription: "directory") { _ = try $0.directory($1) }
    static let existingDirectory = Call(testDescription: "existingDirectory") { _ = try $0.existingDirectory($1) }

    static let ofFiles = [open, openOrCreate, create, lock]
    static let ofDirectories = [directory, existingDirectory]
}

@Suite(.timeLimit(.minutes(10)))
struct PrivateDirectoryTests {
    @Test(arguments: Call.ofFiles, ["canary", "missing"])
    private func `a name that is a link to a file opens and makes nothing`(_ call: Call, target: String) throws {
        let surroundings = try Surroundings()
        try surroundings.link("private/name", to: target)
        #expect(throws: FileError.self) { try call.perform(surroundings.directory, "name") }
        #expect(try surroundings.isOutsideUntouched)
        #expect(!surroundings.exists("missing"))
    }

    @Test(arguments: Call.ofDirectories, ["outside", "missing"])
    private func `a name that is a link to a directory opens and makes nothing`(_ call: Call, target: String) throws {
        let surroundings = try Surroundings()
        try surroundings.link("private/name", to: target)
        #expect(throws: FileError.self) { try call.perform(surroundings.directory, "name") }
        #expect(try surroundings.isOutsideUntouched)
        #expect(!surroundings.exists("missing"))
    }

    @Test func `a path that leads through links is followed`() throws {
        let surroundings = try Surroundings()
        try surroundings.link("link", to: "outside")
        _ = try PrivateDirectory(surroundings.root.appending("link").appending("new"))
        #expect(try surroundings.permissions("outside/new") == 0o700)
    }

    @Test func `a directory stays the one that was opened when its name becomes a link`() throws {
        let surroundings = try Surroundings()
        try FileManager.default.moveItem(
            atPath: surroundings.path("private"), toPath: surroundings.path("moved"))
        try surroundings.link("private", to: "outside")
        try surroundings.directory.create("name").write(Data("content".utf8).bytes)
        try surroundings.directory.remove("canary")
        #expect(try surroundings.text("moved/name") == "content")
        #expect(!surroundings.exists("outside/name"))
        #expect(try surroundings.isOutsideUntouched)
    }

    @Test(arguments: [Call.open, .openOrCreate, .lock, .create, .directory, .existingDirectory])
    private func `a named pipe is refused at once`(_ call: Call) throws {
        let surroundings = try Surroundings()
        #expect(mkfifo(surroundings.path("private/name"), 0o600) == 0)
        #expect(throws: FileError.self) { try call.perform(surroundings.directory, "name") }
    }

    @Test(arguments: [Call.open, .openOrCreate, .lock])
    private func `a file that has a second name is refused and stays as it is`(_ call: Call) throws {
        let surroundings = try Surroundings()
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: surroundings.path("canary"))
        try surroundings.hardLink("private/name", to: "canary")
        let error = #expect(throws: FileError.self) { try call.perform(surroundings.directory, "name") }
        #expect(error?.errno == .notPermitted)
        #expect(try surroundings.permissions("canary") == 0o644)
        #expect(try surroundings.isOutsideUntouched)
    }

    @Test(arguments: [Call.open, .openOrCreate, .lock])
    private func `a directory is no file`(_ call: Call) throws {
        let surroundings = try Surroundings()
        try surroundings.makeDirectory("private/name")
        #expect(throws: FileError.self) { try call.perform(surroundings.directory, "name") }
    }

    @Test(arguments: [0o777, 0o775, 0o757, 0o722, 0o720, 0o1777])
    func `a directory that others can write to is refused and stays as it is`(permissions: Int) throws {
        let surroundings = try Surroundings()
        for name in ["other", "private/other"] {
            try surroundings.makeDirectory(name, permissions: permissions)
        }
        let errors = [
            #expect(throws: FileError.self) { try PrivateDirectory(surroundings.root.appending("other")) },
            #expect(throws: FileError.self) { try surroundings.directory.directory("other") },
            #expect(throws: FileError.self) { try surroundings.directory.existingDirectory("other") },
        ]
        for error in errors {
            #expect(error?.errno == .notPermitted)
            #expect(error?.description.contains("chmod 700") == true)
        }
        #expect(try surroundings.permissions("other") == permissions)
        #expect(try surroundings.permissions("private/other") == permissions)
    }

    @Test(arguments: [0o755, 0o750, 0o711, 0o700])
    func `a directory that others can look into is closed to them`(permissions: Int) throws {
        let surroundings = try Surroundings()
        for name in ["other", "private/other"] {
            try surroundings.makeDirectory(name, permissions: permissions)
        }
        _ = try PrivateDirectory(surroundings.root.appending("other"))
        _ = try surroundings.directory.directory("other")
        #expect(try surroundings.permissions("other") == 0o700)
        #expect(try surroundings.permissions("private/other") == 0o700)
    }

    @Test func `what is made is for its owner alone, and a file that is opened for writing becomes so`() throws {
        let surroundings = try Surroundings()
        _ = try PrivateDirectory(surroundings.root.appending("a/b"))
        _ = try surroundings.directory.directory("directory")
        _ = try surroundings.directory.create("created")
        try surroundings.directory.openOrCreate("opened").close()
        _ = try surroundings.folder.file("private/shared", "text".utf8)
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o644], ofItemAtPath: surroundings.path("private/shared"))
        try surroundings.directory.openOrCreate("shared").close()
        for name in ["private", "a", "a/b", "private/directory"] {
            #expect(try surroundings.permissions(name) == 0o700)
        }
        for name in ["private/created", "private/opened", "private/shared"] {
            #expect(try surroundings.permissions(name) == 0o600)
        }
        #expect(try surroundings.text("private/shared") == "text")
    }

    @Test func `the names are those of the entries alone, and can be read again`() throws {
        let surroundings = try Surroundings()
        let directory = surroundings.directory
        #expect(try directory.names().isEmpty)
        _ = try directory.create("file")
        _ = try directory.create(".hidden")
        _ = try directory.create("with space")
        _ = try directory.directory("directory").create("inside")
        try surroundings.link("private/link", to: "outside")
        for _ in 0..<2 {
            let names = try directory.names().sorted()
            #expect(names == [".hidden", "directory", "file", "link", "with space"])
        }
    }

    @Test func `the status of a link is the link's own, and a missing name has none`() throws {
        let surroundings = try Surroundings()
        try surroundings.link("private/link", to: "canary")
        #expect(try surroundings.directory.status(of: "link")?.type == .symbolicLink)
        #expect(try surroundings.directory.status(of: "missing") == nil)
    }

    @Test func `removing what is gone already is fine`() throws {
        let surroundings = try Surroundings()
        let directory = surroundings.directory
        try directory.remove("missing")
        _ = try directory.create("file")
        for _ in 0..<2 { try directory.remove("file") }
        #expect(try directory.names().isEmpty)
    }

    @Test(arguments: ["canary", "outside", "missing"])
    func `removing a link leaves what it leads to`(target: String) throws {
        let surroundings = try Surroundings()
        try surroundings.link("private/link", to: target)
        try surroundings.directory.remove("link")
        #expect(try surroundings.directory.names().isEmpty)
        #expect(try surroundings.isOutsideUntouched)
    }

    @Test func `a directory is not removed as a file`() throws {
        let surroundings = try Surroundings()
        _ = try surroundings.directory.directory("full").create("file")
        #expect(throws: FileError.self) { try surroundings.directory.remove("full") }
        #expect(surroundings.exists("private/full/file"))
    }
}
