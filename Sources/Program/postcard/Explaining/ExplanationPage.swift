import Foundation
import PostcardDoctor

/// The web page that explains a request pasted into it: a file that `make page` makes and `make install` installs.
enum ExplanationPage {
    static let name = "explain.html"

    /// Opens the page in the browser, or prints its path if there is no display.
    ///
    /// - Throws: ``CommandFailure`` if the page is missing.
    static func open() throws {
        guard let program = ProgramFile.path, let page = page(of: program) else {
            throw CommandFailure(
                description: "The page is not installed with this program: share/postcard/\(name) is missing. "
                    + "'make page' makes it in .build/page, and 'make install' after that installs it.",
                status: ExitStatus.unreadableInput)
        }
        let isOpen = hasDisplay && openInBrowser(page)
        if !isOpen { try Terminal.writeLine(page) }
    }

    /// The page of a program, installed beside the program or built with it; `nil` if there is none.
    static func page(of program: String) -> String? {
        let folder = URL(filePath: program).resolvingSymlinksInPath().deletingLastPathComponent()
        // A build's folder is .build/PLATFORM/debug.
        return ["../share/postcard/\(name)", "../../page/\(name)"].lazy
            .map { folder.appending(path: $0).standardized.path(percentEncoded: false) }
            .first { FileManager.default.isReadableFile(atPath: $0) }
    }

    private static var hasDisplay: Bool {
        #if os(macOS)
        true
        #else
        ["DISPLAY", "WAYLAND_DISPLAY"].contains { ProcessInfo.processInfo.environment[$0]?.isEmpty == false }
        #endif
    }

    private static func openInBrowser(_ page: String) -> Bool {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        #if os(macOS)
        process.arguments = ["open", page]
        #else
        process.arguments = ["xdg-open", page]
        #endif
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}

enum ProgramFile {
    static var path: String? {
        #if canImport(Darwin)
        Bundle.main.executablePath
        #else
        try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        #endif
    }
}
