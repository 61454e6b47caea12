import Foundation
import PostcardForm
import PostcardTestSupport
import Testing

@testable import PostcardPictures

@Suite struct LoadedItemTests {
    private static let heic = OfferedType("public.heic", .image, mimeType: "image/heic", fileExtension: "heic")
    private static let jpeg = OfferedType("public.jpeg", .image, mimeType: "image/jpeg", fileExtension: "jpeg")
    private static let movie = OfferedType(
        "com.apple.quicktime-movie", .movie, mimeType: "video/quicktime", fileExtension: "mov")
    private static let raw = OfferedType(
        "com.adobe.raw-image", .image, mimeType: "image/x-adobe-dng", fileExtension: "dng")
    private static let pdf = OfferedType("com.adobe.pdf", .data, mimeType: "application/pdf", fileExtension: "pdf")
    private static let link = OfferedType("public.url", .unusable, mimeType: nil, fileExtension: nil)
    private static let livePhoto = OfferedType(
        "com.apple.live-photo-bundle", .data, mimeType: nil, fileExtension: "pvt")
    private static let privateLivePhoto = OfferedType(
        "com.apple.private.live-photo-bundle", .image, mimeType: nil, fileExtension: "pvt")
    private static let unknown = OfferedType("com.example.thing", .data, mimeType: nil, fileExtension: nil)

    @Test(
        arguments: [
            ([heic, jpeg], [], heic), ([jpeg, heic], [], jpeg), ([movie], [], movie),
            // A server that accepts only JPEG, and an item that can be had as one or not.
            ([heic, jpeg], [.jpeg], jpeg), ([heic], [.jpeg], heic), ([heic, jpeg], [.png, .jpeg], jpeg),
            ([jpeg, heic], [.heic, .jpeg], heic),
            ([livePhoto, heic, movie], [], heic), ([privateLivePhoto, jpeg], [], jpeg),
            ([link, jpeg], [], jpeg), ([pdf], [], pdf), ([pdf, jpeg], [], jpeg), ([link, unknown], [], unknown),
            ([link], [], nil), ([livePhoto], [.jpeg], nil), ([], [.jpeg], nil),
        ] as [([OfferedType], [MediaType], OfferedType?)])
    func `the type that keeps most of a picture is loaded, unless the server prefers another`(
        offered: [OfferedType], preferred: [MediaType], expected: OfferedType?
    ) {
        #expect(OfferedType.best(of: offered, preferring: preferred) == expected)
    }

    @Test(
        arguments: [
            ("IMG_0001", "IMG_0001.heic", heic, "IMG_0001.heic", "image/heic"),
            ("IMG_0001", "4F0C.heic", heic, "IMG_0001.heic", "image/heic"),
            (nil, "IMG_0001.HEIC", heic, "IMG_0001.HEIC", "image/heic"),
            ("", "4F0C.mov", movie, "4F0C.mov", "video/quicktime"),
            // The name is of another format than what was loaded.
            ("IMG_0001.HEIC", "IMG_0001.jpeg", jpeg, "IMG_0001.jpeg", "image/jpeg"),
            ("IMG_0001.JPG", "4F0C.jpeg", jpeg, "IMG_0001.JPG", "image/jpeg"),
            ("초코", "4F0C.jpeg", jpeg, "초코.jpeg", "image/jpeg"),
            ("v1.2", "4F0C.jpeg", jpeg, "v1.2.jpeg", "image/jpeg"),
            ("IMG_0001", "4F0C", heic, "IMG_0001.heic", "image/heic"),
            ("IMG_0001.DNG", "4F0C.dng", raw, "IMG_0001.DNG", "image/x-adobe-dng"),
            ("IMG_0001", "4F0C.dng", raw, "IMG_0001.dng", "image/x-adobe-dng"),
            ("Cats/Dogs: 2026", "4F0C.pdf", pdf, "Cats-Dogs- 2026.pdf", "application/pdf"),
            ("..", "4F0C.pdf", pdf, "4F0C.pdf", "application/pdf"),
            (".png", "4F0C.jpeg", jpeg, ".png.jpeg", "image/jpeg"),
            ("thing", "thing", unknown, "thing", nil), (nil, "", unknown, "file", nil),
        ] as [(String?, String, OfferedType, String, String?)])
    func `a loaded file has the item's name, and the extension and type of what was loaded`(
        suggestedName: String?, file: String, type: OfferedType, filename: String, contentType: String?
    ) {
        let name = PictureName(suggested: suggestedName, file: file, type: type)
        #expect(name.filename == filename)
        #expect(name.contentType?.value == contentType)
    }

    @Test(
        arguments: [
            ("IMG_0001.HEIC", "IMG_0001.HEIC", heic, "IMG_0001.HEIC"),
            ("IMG_0001.HEIC", "FullSizeRender.jpg", jpeg, "IMG_0001.jpg"),
            ("IMG_0001.HEIC", "IMG_0001.MOV", movie, "IMG_0001.MOV"),
            ("IMG_0001.HEIC", "FullSizeRender.mov", movie, "IMG_0001.mov"),
            ("IMG_0001.DNG", "FullSizeRender.jpg", jpeg, "IMG_0001.jpg"),
            ("IMG_0001", "FullSizeRender.jpg", jpeg, "IMG_0001.jpg"), ("IMG_0001", "IMG_0001", heic, "IMG_0001.heic"),
        ] as [(String, String, OfferedType, String)])
    func `an edited photo has the name of its original`(
        original: String, file: String, type: OfferedType, filename: String
    ) {
        #expect(PictureName(original: original, file: file, type: type).filename == filename)
    }

    @Test(
        arguments: [
            ("report.pdf", "F0A1.pdf", "report.pdf"), ("notes.rtfd", "F0A1.zip", "notes.rtfd.zip"),
            ("photos.zip", "F0A1.zip", "photos.zip"), ("photos.ZIP", "F0A1.ZIP", "photos.ZIP"), ("a", "F0A1", "a"),
        ])
    func `an imported folder is named as the archive that it became`(file: String, copy: String, expected: String) {
        #expect(PictureName.imported(file, as: copy) == expected)
    }

    @Test(
        arguments: [
            (.primary, .original, [.photo], false, 0), (.primary, .current, [.photo], false, 0),
            (.primary, .original, [.other, .fullSizePhoto, .photo], false, 2),
            (.primary, .current, [.photo, .other, .fullSizePhoto], false, 2),
            (.primary, .original, [.video, .fullSizeVideo], true, 0),
            (.primary, .current, [.video, .fullSizeVideo], true, 1),
            // A Live Photo, and an edited one.
            (.primary, .original, [.photo, .pairedVideo], false, 0),
            (.pairedVideo, .current, [.photo, .pairedVideo], false, 1),
            (.pairedVideo, .original, [.photo, .pairedVideo, .fullSizePhoto, .fullSizePairedVideo], false, 1),
            (.pairedVideo, .current, [.photo, .pairedVideo, .fullSizePhoto, .fullSizePairedVideo], false, 3),
            // A JPEG with its RAW file.
            (.primary, .original, [.alternatePhoto, .photo], false, 1),
            (.alternatePhoto, .original, [.alternatePhoto, .photo], false, 0),
            (.alternatePhoto, .current, [.photo, .alternatePhoto, .fullSizePhoto], false, 1),
            // What is not there has no stand-in.
            (.primary, .original, [.fullSizePhoto], false, nil), (.primary, .original, [.photo], true, nil),
            (.pairedVideo, .original, [.photo], false, nil), (.alternatePhoto, .current, [.photo], false, nil),
            (.primary, .current, [], false, nil), (.primary, .current, [.other, .audio], false, nil),
        ] as [(PhotoComponent, PhotoVersion, [PhotoResource], Bool, Int?)])
    func `the resource sent is the version and component asked for`(
        component: PhotoComponent, version: PhotoVersion, resources: [PhotoResource], isVideo: Bool, expected: Int?
    ) {
        #expect(PhotoResource.index(of: component, version, in: resources, isVideo: isVideo) == expected)
    }
}

@Suite struct LoadedFileTests {
    @Test func `a lent file is copied before it goes`() throws {
        let folder = try TemporaryFolder()
        let lent = try folder.file("4F0C.jpeg", [0xFF, 0xD8, 0xFF])
        let type = OfferedType("public.jpeg", .image, mimeType: "image/jpeg", fileExtension: "jpeg")
        let parts = try (0..<2).map { _ in
            try FormPart.loaded(
                lent, named: "petImage", suggestedName: "choco", type: type,
                to: folder.url.appending(path: "kept/here"), metadata: .withoutLocation)
        }
        try FileManager.default.removeItem(at: lent)

        for part in parts {
            #expect(part.filename == "choco.jpeg")
            #expect(part.contentType == .jpeg)
            guard case .file(let copy) = part.content else { throw PictureError.noFile(offered: []) }
            #expect(try Data(contentsOf: copy) == Data([0xFF, 0xD8, 0xFF]))
            #expect(copy.path.hasPrefix(folder.path + "/kept/here/"))
            #expect(copy.pathExtension == "jpeg")
        }
    }

    @Test(arguments: [OfferedType.Kind.image, .movie, .data])
    func `pictures and videos are sent without their place, and documents as they are`(kind: OfferedType.Kind) throws {
        let folder = try TemporaryFolder()
        let part = try FormPart.loaded(
            try folder.file("lent", [1]), named: "a", suggestedName: nil,
            type: OfferedType("type", kind, mimeType: nil, fileExtension: nil), to: folder.url,
            metadata: .withoutLocation)
        #expect(part.metadata == (kind == .data ? .asIs : .withoutLocation))
    }

    @Test func `a file that cannot be copied is an error and leaves nothing`() throws {
        let folder = try TemporaryFolder()
        let type = OfferedType("public.jpeg", .image, mimeType: "image/jpeg", fileExtension: "jpeg")
        let error = #expect(throws: PictureError.self) {
            try FormPart.loaded(
                folder.url.appending(path: "gone.jpeg"), named: "a", suggestedName: nil, type: type, to: folder.url,
                metadata: .withoutLocation)
        }
        #expect(error?.code == .notLoadable)
        #expect(error?.underlyingError != nil)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }

    @Test(
        arguments: [
            ("a.HEIC", "HEIC"), ("a", ""), ("a.", ""), ("a.b/c", ""), ("a.tar.gz", "gz"), (".png", "png"),
            ("a.extremely-long-extension", ""), ("..", ""), ("사진.사진", "사진"),
        ])
    func `the place of a copy keeps only a plain extension`(name: String, fileExtension: String) throws {
        let folder = try TemporaryFolder()
        let place = try LoadedFile.place(in: folder.url, for: name)
        #expect(place.pathExtension == fileExtension)
        #expect(place.deletingLastPathComponent().path.hasPrefix(folder.path))
        #expect(try LoadedFile.place(in: folder.url, for: name) != place)
    }

    @Test func `copies go to a folder of their own by default`() throws {
        let place = try LoadedFile.place(in: nil, for: "a.jpg")
        #expect(place.path.hasPrefix(FormPart.temporaryFolder.path))
        #expect(FormPart.temporaryFolder.lastPathComponent.hasPrefix("Postcard"))
    }

    @Test func `only the owner can read a copy and the folder that is made for it`() throws {
        let folder = try TemporaryFolder()
        let file = try folder.file("a.jpg", [1])
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file.path)
        let made = folder.url.appending(component: "made")
        let copy = try LoadedFile.copy(file, to: made)
        for (url, permissions) in [(copy, 0o600), (made, 0o700), (file, 0o644)] {
            let attributes = try FileManager.default.attributesOfItem(atPath: url.path)
            #expect(attributes[.posixPermissions] as? Int == permissions, "\(url.path)")
        }
    }

    @Test func `the file that a link leads to is copied, not the link`() throws {
        let folder = try TemporaryFolder()
        let file = try folder.file("a.jpg", [1])
        let link = folder.url.appending(component: "link.jpg")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: file)
        let copy = try LoadedFile.copy(link, to: folder.url)
        try FileManager.default.removeItem(at: file)
        #expect(try Data(contentsOf: copy) == Data([1]))
    }

    @Test func `chunks make a file, and what comes after it is discarded does not`() async throws {
        let folder = try TemporaryFolder()
        let file = try await ReceivedFile.create(in: folder.url, for: "IMG_0001.DNG")
        #expect(file.url.pathExtension == "DNG")
        try file.append(Data("choco".utf8))
        try file.append(Data("late".utf8))
        try file.finish()
        #expect(try String(contentsOf: file.url, encoding: .utf8) == "chocolate")
        #expect(throws: (any Error).self) { try ReceivedFile(at: file.url) }

        await file.discard()
        try file.append(Data("more".utf8))
        #expect(!FileManager.default.fileExists(atPath: file.url.path))
    }
}

@Suite struct CallbackResultTests {
    @Test func `the result of a callback is returned, and only the first`() async throws {
        let result = CallbackResult<Int>()
        let value = try await result.value {
            result.finish(.success(7))
            result.finish(.success(8))
            result.abandon(throwing: PictureError.noFile(offered: []))
            return { Issue.record("it was cancelled") }
        }
        #expect(value == 7)
    }

    @Test func `what starting throws is thrown`() async {
        let error = await #expect(throws: PictureError.self) {
            try await CallbackResult<Int>().value { throw PictureError.noFile(offered: ["public.url"]) }
        }
        #expect(error?.message.contains("public.url") == true)
    }

    @Test func `a task that is cancelled cancels the call and waits no longer`() async {
        await confirmation("the call is cancelled") { isCancelled in
            await confirmation("what comes late is discarded") { isDiscarded in
                let result = CallbackResult<Int> { _ in isDiscarded() }
                let (started, start) = AsyncStream<Void>.makeStream()
                let task = Task {
                    try await result.value {
                        start.yield()
                        return { isCancelled() }
                    }
                }
                for await _ in started { break }
                task.cancel()
                await #expect(throws: CancellationError.self) { try await task.value }
                result.finish(.success(7))
            }
        }
    }

    @Test func `a task that was cancelled before starts no call`() async {
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await CallbackResult<Int>().value {
                Issue.record("it was started")
                return {}
            }
        }
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func `a call that is abandoned while it is started is cancelled once it was`() async {
        await confirmation { isCancelled in
            let result = CallbackResult<Int>()
            await #expect(throws: PictureError.self) {
                try await result.value {
                    result.abandon(throwing: PictureError.noFile(offered: []))
                    return { isCancelled() }
                }
            }
        }
    }
}
