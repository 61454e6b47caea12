import ArgumentParser
import Foundation
import PostcardReceiver
import PostcardServer

/// The format of the line that `serve` writes to standard error for each request.
enum RequestLines: String, ExpressibleByArgument, CaseIterable {
    /// Lines for people: time, client, method, path, status, duration, size, files and the code of a refusal.
    case text
    /// Lines for programs, each with a JSON object.
    case json
    case off = "none"

    func write(_ line: RequestLine) {
        switch self {
        case .text: Terminal.say(Self.text(of: line))
        case .json:
            guard let json = try? JSONEncoder.forResponses.encode(Entry(line)) else { return }
            Terminal.say(String(decoding: json, as: UTF8.self))
        case .off: break
        }
    }

    private static func text(of line: RequestLine) -> String {
        let parts = Calendar.current.dateComponents([.hour, .minute, .second], from: line.ended)
        let time = String(format: "%02d:%02d:%02d", parts.hour ?? 0, parts.minute ?? 0, parts.second ?? 0)
        var words = [time, line.client?.description ?? "-", "\(line.method) \(line.path)"]
        words.append(line.status.map { "\($0)" } ?? "closed")
        words.append("\(Int(line.duration / .milliseconds(1))) ms")
        if let size = line.size, size > 0 { words.append(ProgressLines.size(size)) }
        if let count = line.fileCount { words.append(count == 1 ? "1 file" : "\(count) files") }
        if let code = line.code { words.append(code) }
        if line.isBrokenOff { words.append("broken off") }
        return words.joined(separator: "  ")
    }

    /// The JSON object of a line.
    private struct Entry: Encodable {
        let time: Date
        let client: String?
        let method: String
        let path: String
        let status: Int?
        let milliseconds: Int
        let size: Int64?
        let files: Int?
        let code: String?
        let upload: String?
        /// Whether only a part of the response was sent; absent if all of it was.
        let brokenOff: Bool?

        init(_ line: RequestLine) {
            time = line.ended
            client = line.client?.description
            method = line.method
            path = line.path
            status = line.status
            milliseconds = Int(line.duration / .milliseconds(1))
            size = line.size
            files = line.fileCount
            code = line.code
            upload = line.upload?.description
            brokenOff = line.isBrokenOff ? true : nil
        }
    }
}
