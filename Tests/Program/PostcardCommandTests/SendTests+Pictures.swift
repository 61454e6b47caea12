import Foundation
import PostcardPictures
import PostcardSamples
import PostcardTestSupport
import Testing

/// What is done to pictures before they are sent.
extension SendTests {
    @Test(arguments: [nil, "as-is", "without-location", "none"] as [String?])
    func `what is to be removed of a picture's metadata is not sent`(choice: String?) async throws {
        var bytes: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        for chunk in ["tEXtexif:GPSPosition\0SECRET", "tEXtTitle\0KEPT", "IEND"] {
            bytes += [0, 0, 0, UInt8(chunk.utf8.count - 4)] + Array(chunk.utf8) + [0, 0, 0, 0]
        }
        let picture = try folder.file("a.png", bytes)
        let server = try await RunningServer(["serve", "--port", "0", "--directory", folder.path])
        let options = choice.map { ["--metadata", $0] } ?? []
        let ending = try await Program.run(
            ["send", "\(server.address)/uploads", "-F", "text=b", "-F", "a=@\(picture.path)", "--verify"] + options)
        #expect(ending.status == 0, "\(ending.messages)")
        #expect(ending.messages.contains("a.png is sent without its position") == (choice == nil), "\(ending.messages)")
        let dry = try await Program.run(["send", server.address, "-F", "a=@\(picture.path)", "--dry-run"] + options)
        #expect((dry.output.range(of: Data("SECRET".utf8)) != nil) == (choice == "as-is"))
        #expect((dry.output.range(of: Data("KEPT".utf8)) != nil) == (choice != "none"))
    }

    private static func png(_ text: String) -> [UInt8] {
        var bytes: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        for chunk in ["tEXtexif:GPSPosition\0\(text)", "IEND"] {
            bytes += [0, 0, 0, UInt8(chunk.utf8.count - 4)] + Array(chunk.utf8) + [0, 0, 0, 0]
        }
        return bytes
    }

    @Test(
        arguments: [nil, "as-is", "without-location", "none"] as [String?],
        ["a=@-;filename=a.png", "a=@-;encoder=quoted-printable", "a=<-", "a=<FILE", "a=<FILE;encoder=quoted-printable"])
    func `a picture from standard input or through < is treated as --metadata says`(choice: String?, part: String)
        async throws
    {
        let picture = Self.png("\nSECRET")
        let file = try folder.file("a.png", picture)
        let options = choice.map { ["--metadata", $0] } ?? []
        let dry = try await Program.run(
            ["send", "http://127.0.0.1:1/", "-F", part.replacing("FILE", with: file.path), "--dry-run", "--crlf"]
                + options,
            input: Data(picture))
        #expect(dry.status == 0, "\(dry.messages)")
        #expect((dry.output.range(of: Data("SECRET".utf8)) != nil) == (choice == "as-is"))
        #expect(dry.messages.contains("is sent without its position. To") == (choice == nil), "\(dry.messages)")
        if choice == "as-is", !part.contains("encoder") { #expect(dry.output.range(of: Data(picture)) != nil) }
    }

    @Test
    func `what is no picture passes through standard input and <, and is refused if its metadata has to go`()
        async throws
    {
        let document = Data("%PDF-1.7\u{FF}".unicodeScalars.map { UInt8($0.value) })
        for part in ["a=@-", "a=<-"] {
            let dry = try await Program.run(["send", "http://127.0.0.1:1/", "-F", part, "--dry-run"], input: document)
            #expect(dry.status == 0 && dry.output.range(of: document) != nil, "\(dry.messages)")
            #expect(!dry.messages.contains("is sent"), "\(dry.messages)")
            for choice in ["without-location", "none"] {
                let ending = try await Program.run(
                    ["send", "http://127.0.0.1:1/", "-F", part, "--dry-run", "--metadata", choice], input: document)
                #expect(ending.status == 66, "\(ending.messages)")
                #expect(ending.messages.contains("Standard input") && ending.messages.contains("application/pdf"))
            }
        }
        let text = try await Program.run(
            ["send", "http://127.0.0.1:1/", "-F", "a=<-", "--dry-run", "--metadata", "none"], input: Data("a text".utf8)
        )
        #expect(text.status == 0, "\(text.messages)")
    }

    @Test
    func `what is removed is named only if there was any, and a file that is not understood too`() async throws {
        func messages(_ name: String, _ bytes: [UInt8], _ options: String...) async throws -> String {
            let file = try folder.file(name, bytes)
            let dry = try await Program.run(
                ["send", "http://127.0.0.1:1/", "-F", "a=@\(file.path)", "--dry-run"] + options)
            #expect(dry.status == 0, "\(dry.messages)")
            return dry.messages
        }
        let picture = Array(try Data(contentsOf: #require(SamplePictures.all().first { $0.pathExtension == "jpg" })))
        let zeros = try await messages("zeros.jpg", picture + [UInt8](repeating: 0, count: 500))
        #expect(!zeros.contains("is sent"), "\(zeros)")
        let position = try await messages("two.jpg", Self.png("SECRET") + Array("SECRET".utf8))
        #expect(position.contains("two.jpg is sent without its position and the data after its end."), "\(position)")
        let cut = try await messages("cut.png", Array(Self.png("SECRET").dropLast(20)))
        let line = "cut.png is sent as it is with all its metadata. The metadata cannot be removed"
        #expect(cut.contains(line), "\(cut)")
        let asked = try await messages("asked.png", Self.png("SECRET") + [1], "--metadata", "none")
        #expect(asked.contains("asked.png is sent without the data after its end."), "\(asked)")
    }

    @Test(.enabled(if: PictureFitter.isAvailable))
    func `a motion photo that becomes a still picture is named`() async throws {
        let picture = try #require(try SamplePictures.all().first { $0.pathExtension == "jpg" })
        let video: [UInt8] =
            [0, 0, 0, 16] + Array("ftypisom\0\0\0\0".utf8) + [0, 0, 0, 12] + Array("mdatABCD".utf8) + [0, 0, 0, 8]
            + Array("moov".utf8)
        let file = try folder.file("motion.jpg", Array(try Data(contentsOf: picture)) + video)
        for (fit, isStill) in [("50kB", true), ("50MB", false)] {
            for arguments in [["-F", "a=@\(file.path)"], ["-F", "a=@-;filename=motion.jpg"]] {
                let dry = try await Program.run(
                    ["send", "http://127.0.0.1:1/", "--dry-run", "--fit", fit] + arguments,
                    input: try Data(contentsOf: file))
                #expect(dry.status == 0, "\(dry.messages)")
                let line = "motion.jpg is sent as a still picture, without its video"
                #expect(dry.messages.contains(line) == isStill, "\(dry.messages)")
                #expect((dry.output.range(of: Data("mdatABCD".utf8)) == nil) == isStill)
            }
        }
    }

    @Test(.enabled(if: PictureFitter.isAvailable))
    func `a picture that fits already loses its position too`() async throws {
        let picture = try #require(try SamplePictures.all().first { $0.pathExtension == "jpg" })
        // EXIF with a directory for a position (Exif 3.0 §4.6.6).
        let directory: [UInt8] = [0, 1, 0, 1, 0, 2, 0, 0, 0, 2, 0x4E, 0, 0, 0, 0, 0, 0, 0]
        let exif =
            Array("Exif\0\0MM".utf8)
            + [0, 42, 0, 0, 0, 8, 0, 1, 0x88, 0x25, 0, 4, 0, 0, 0, 1, 0, 0, 0, 26, 0, 0, 0, 0] + directory
        var bytes = Array(try Data(contentsOf: picture))
        bytes.insert(contentsOf: [0xFF, 0xE1, 0, UInt8(exif.count + 2)] + exif, at: 2)
        let file = try folder.file("place.jpg", bytes)
        for (options, isKept) in [(["--fit", "50MB"], false), ([], false), (["--metadata", "as-is"], true)] {
            let dry = try await Program.run(
                ["send", "http://127.0.0.1:1/", "-F", "a=@\(file.path)", "--dry-run"] + options)
            #expect(dry.messages.contains("place.jpg is sent without its position") == !isKept, "\(dry.messages)")
            #expect((dry.output.range(of: Data(exif)) != nil) == isKept, "\(options)")
            #expect(dry.output.count > bytes.count)
        }
    }

    @Test
    func `pictures are made to fit, by their content, and other files are not`() async throws {
        // A JPEG of 64 by 48 pixels without its pixels: it fits, or it cannot be decoded.
        let frame: [UInt8] = [0xFF, 0xC0, 0, 17, 8, 0, 48, 0, 64, 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1]
        let head: [UInt8] = [0xFF, 0xD8] + frame + [0xFF, 0xDA, 0, 2]
        let picture = try folder.file("photo.dat", head + [UInt8](repeating: 0, count: 2000))
        let other = try folder.file("list.jpg", Array("no picture".utf8) + [UInt8](repeating: 32, count: 5000))
        let arguments = ["http://127.0.0.1:1/", "-F", "a=@\(picture.path)", "-F", "b=@\(other.path)"]
        for fit in [
            ["--fit", "5kB"], ["--fit", "server"], ["--max-edge", "64"], ["--fit", "5kB", "--max-edge", "64"],
        ] {
            let dry = try await Program.run(["send"] + arguments + ["--dry-run"] + fit)
            #expect(dry.status == 0 && dry.output.count > 7000, "\(dry.messages)")
        }
        for fit in [["--fit", "1kB"], ["--max-edge", "32"], ["--fit", "server", "--max-edge", "32"]] {
            let ending = try await Program.run(["send"] + arguments + fit)
            // 70 if the program was built without the libraries for pictures.
            #expect(ending.status == (PictureFitter.isAvailable ? 66 : 70), "\(ending.messages)")
            #expect(ending.messages.contains("photo.dat: ") && ending.messages.contains("picture"))
            #expect(PictureFitter.isAvailable || ending.messages.contains("Scripts/set-up pictures"))
        }
    }

    @Test(.enabled(if: PictureFitter.isAvailable))
    func `pictures that the server refuses as too large are sent once more within its limit`() async throws {
        let server = try await RunningServer([
            "serve", "--port", "0", "--directory", folder.path, "--max-body", "300kB",
        ])
        var arguments = ["send", "\(server.address)/uploads", "--json", "-F", "name=초코"]
        for picture in try SamplePictures.all() { arguments += ["-F", "picture=@\(picture.path)"] }
        #expect(try await Program.run(arguments).status == 1)
        // The server has reported its limit before anything was sent.
        for (fit, attempts) in [("server", 1), ("90kB", 1)] {
            let ending = try await Program.run(arguments + ["--fit", fit])
            #expect(ending.status == 0, "\(ending.messages)")
            let response = try ending.json()
            #expect(response["attempts"] as? Int == attempts && response["bytesSent"] as? Int ?? .max <= 300_000)
            let record = try #require(response["body"] as? [String: Any])
            let files = try #require(record["files"] as? [[String: Any]])
            #expect(files.map { $0["filename"] as? String } == ["hills.jpg", "stamp.jpg", "제주 바다.jpg"])
            #expect(files.allSatisfy { $0["contentType"] as? String == "image/jpeg" })
        }
    }

    @Test(.enabled(if: PictureFitter.isAvailable))
    func `pictures are made to fit one limit after the other`() async throws {
        let server = try await RunningServer([
            "serve", "--port", "0", "--directory", folder.path, "--max-body", "300kB", "--max-file", "60kB",
        ])
        var arguments = ["send", "\(server.address)/uploads", "--json", "--fit", "server"]
        for picture in try SamplePictures.all() { arguments += ["-F", "picture=@\(picture.path)"] }
        let ending = try await Program.run(arguments)
        #expect(ending.status == 0, "\(ending.messages)")
        let record = try #require(try ending.json()["body"] as? [String: Any])
        let files = try #require(record["files"] as? [[String: Any]])
        #expect(files.count == 3 && files.allSatisfy { $0["size"] as? Int ?? .max <= 60_000 })
    }

    @Test(.enabled(if: PictureFitter.isAvailable), arguments: [SIGINT, SIGTERM, SIGKILL])
    func `files that were made for the form are gone after a signal, and after a crash at the next start`(number: Int32)
        async throws
    {
        // A server that never responds.
        let script = """
            import socket, time
            listener = socket.create_server(("127.0.0.1", 0))
            print("http://127.0.0.1:%d" % listener.getsockname()[1], flush=True)
            connections = []
            while True: connections.append(listener.accept()[0])
            """
        let server = try await RunningServer(["python3", "-c", script], of: URL(filePath: "/usr/bin/env"))
        let picture = try #require(try SamplePictures.all().first)
        let arguments = ["send", server.address, "-F", "a=@\(picture.path)", "--fit", "20kB"]
        let prepared = folder.url.appending(component: "Postcard-\(geteuid())")
        let process = Process()
        process.executableURL = Program.url
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(["TMPDIR": folder.path]) { $1 }
        try process.run()
        func files() -> [String] {
            ((try? FileManager.default.subpathsOfDirectory(atPath: prepared.path)) ?? []).filter {
                $0.hasSuffix(".jpg")
            }
        }
        try await eventually { !files().isEmpty }
        kill(process.processIdentifier, number)
        process.waitUntilExit()
        #expect(process.terminationReason == .uncaughtSignal && process.terminationStatus == number)
        if number == SIGKILL {
            #expect(!files().isEmpty)
            let next = try await Program.run(
                ["send", "http://127.0.0.1:1/", "-F", "a=@\(picture.path)", "--fit", "20kB"],
                environment: ["TMPDIR": folder.path])
            #expect(next.status == 69, "\(next.messages)")
        }
        #expect(files().isEmpty)
    }
}
