import Foundation
import PostcardForm
import SystemPackage

/// Where background uploads lie between one run of the program and the next.
///
/// ```
/// lock                 held by the process that uses the folder
/// ID/manifest.json     what is uploaded and how it went
/// ID/body              the form's bytes, until the server has taken them
/// .new-ID/             an upload that is still being written, or is being removed
/// ```
struct UploadsFolder: Sendable {
    let url: URL

    /// Makes the folder where there is none.
    init(_ url: URL) throws(BackgroundUploadError) {
        self.url = url
        try Self.makeFolder(url)
    }

    /// What lies in the folder.
    struct Contents {
        var manifests: [UploadManifest] = []
        var problems: [BackgroundUploadError] = []
    }

    /// Reads every manifest; what cannot be read is named and left as it is.
    func read() throws(BackgroundUploadError) -> Contents {
        let names: [String]
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: url.path)
        } catch {
            throw .folder(url, "read", error)
        }
        var contents = Contents()
        for id in names.compactMap(UUID.init(uuidString:)) {
            do {
                contents.manifests.append(try readManifest(id))
            } catch {
                contents.problems.append(error)
            }
        }
        return contents
    }

    private func readManifest(_ id: UUID) throws(BackgroundUploadError) -> UploadManifest {
        let file = manifestFile(id)
        let manifest: UploadManifest
        do {
            let data = try Data(contentsOf: file)
            let version = try JSONDecoder().decode(Version.self, from: data).version
            guard version <= UploadManifest.currentVersion else {
                throw BackgroundUploadError.manifest(file, "a newer version of the program wrote it")
            }
            manifest = try JSONDecoder().decode(UploadManifest.self, from: data)
        } catch let error as BackgroundUploadError {
            throw error
        } catch let error as DecodingError {
            throw .manifest(file, "it is not the JSON that was written", underlying: error)
        } catch {
            throw .manifest(file, "it cannot be read (\((error as NSError).localizedDescription))", underlying: error)
        }
        guard manifest.id == id else { throw .manifest(file, "it speaks of \(manifest.id)") }
        return manifest
    }

    private struct Version: Decodable {
        let version: Int
    }

    /// Removes what a program left half-written or half-removed that ended in the middle of it.
    func sweep() {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: url.path)) ?? []
        where name.hasPrefix(Self.newPrefix) {
            try? FileManager.default.removeItem(at: url.appending(component: name))
        }
    }

    /// Writes a body and then its manifest. An upload appears whole or not at all.
    ///
    /// - Parameter manifest: Makes the manifest, told how many bytes the body has.
    /// - Throws: ``BackgroundUploadError``; what reading the form throws.
    func create(
        _ id: UUID, _ layout: FormLayout, manifest: (Int64) -> UploadManifest
    ) async throws -> UploadManifest {
        let new = newFolder(id)
        try Self.makeFolder(new)
        do {
            let length = try await Self.write(new.appending(component: "body")) { try await layout.write(to: $0) }
            let manifest = manifest(length)
            try Self.write(manifest, to: new.appending(component: "manifest.json"))
            try Self.move(new, to: folder(id))
            return manifest
        } catch {
            try? FileManager.default.removeItem(at: new)
            throw error
        }
    }

    /// Puts a manifest in the place of the one before it.
    func write(_ manifest: UploadManifest) throws(BackgroundUploadError) {
        let folder = folder(manifest.id)
        let new = folder.appending(component: "manifest.new")
        try Self.write(manifest, to: new)
        try Self.move(new, to: manifestFile(manifest.id))
    }

    /// Makes room for a manifest where there is none that can be read; one that is there is kept beside it.
    func makeRoom(for id: UUID) throws(BackgroundUploadError) {
        try Self.makeFolder(folder(id))
        let file = manifestFile(id)
        guard FileManager.default.fileExists(atPath: file.path) else { return }
        try Self.move(file, to: folder(id).appending(component: "manifest.damaged"))
    }

    /// Where the body of an upload lies.
    func body(_ id: UUID) -> URL {
        folder(id).appending(component: "body")
    }

    /// - Throws: ``BackgroundUploadError`` where the body is gone or is not what was written.
    func checkBody(of manifest: UploadManifest) throws(BackgroundUploadError) {
        let file = body(manifest.id)
        let descriptor = try? FileDescriptor.open(FilePath(file.path), .readOnly, options: .closeOnExec)
        defer { try? descriptor?.close() }
        let size = try? descriptor?.seek(offset: 0, from: .end)
        guard size == manifest.bodyLength else { throw .bodyMissing(file, of: manifest) }
    }

    func removeBody(_ id: UUID) {
        try? FileManager.default.removeItem(at: body(id))
    }

    func remove(_ id: UUID) throws(BackgroundUploadError) {
        let folder = folder(id)
        let removed = newFolder(id)
        // It goes whole or not at all; what is left of it when the program ends here is swept.
        guard rename(folder.path, removed.path) == 0 else {
            if errno == ENOENT { return }
            throw .folder(folder, "remove", Errno(rawValue: errno))
        }
        do {
            try FileManager.default.removeItem(at: removed)
        } catch {
            throw .folder(removed, "remove", error)
        }
    }

    private static let newPrefix = ".new-"

    private func newFolder(_ id: UUID) -> URL {
        url.appending(component: Self.newPrefix + id.uuidString)
    }

    private func folder(_ id: UUID) -> URL {
        url.appending(component: id.uuidString)
    }

    private func manifestFile(_ id: UUID) -> URL {
        folder(id).appending(component: "manifest.json")
    }
}

extension UploadsFolder {
    /// For the owner's eyes alone: what lies here is what the user sends.
    private static func makeFolder(_ url: URL) throws(BackgroundUploadError) {
        do {
            try FileManager.default.createDirectory(
                at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw .folder(url, "make", error)
        }
    }

    private static func write(_ manifest: UploadManifest, to url: URL) throws(BackgroundUploadError) {
        do {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
            let data = try encoder.encode(manifest)
            let descriptor = try open(url)
            try descriptor.closeAfter {
                _ = try descriptor.writeAll(data)
                try synchronize(descriptor)
            }
        } catch {
            throw .folder(url, "write", error)
        }
    }

    /// Writes a file, and waits until its bytes are on the disk.
    private static func write(
        _ url: URL, _ content: (FileDescriptor) async throws -> Int64
    ) async throws -> Int64 {
        let descriptor: FileDescriptor
        do {
            descriptor = try open(url)
        } catch {
            throw BackgroundUploadError.folder(url, "write", error)
        }
        defer { try? descriptor.close() }
        do {
            let length = try await content(descriptor)
            try synchronize(descriptor)
            return length
        } catch let error as Errno {
            throw BackgroundUploadError.folder(url, "write", error)
        }
    }

    private static func open(_ url: URL) throws -> FileDescriptor {
        try FileDescriptor.open(
            FilePath(url.path), .writeOnly, options: [.create, .truncate, .closeOnExec],
            permissions: [.ownerRead, .ownerWrite])
    }

    private static func synchronize(_ descriptor: FileDescriptor) throws {
        if fsync(descriptor.rawValue) != 0 { throw Errno(rawValue: errno) }
    }

    private static func move(_ url: URL, to target: URL) throws(BackgroundUploadError) {
        guard rename(url.path, target.path) == 0 else {
            throw .folder(target, "write", Errno(rawValue: errno))
        }
    }
}
