import Foundation
import PostcardQueue

@main
struct Consumer {
    static func main() throws {
        var form = MultipartForm()
        form.append("초코", named: "name")
        let directory = FileManager.default.temporaryDirectory.appending(path: "consumer-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        let queue = UploadQueue(directory: directory)
        print("\(type(of: queue)) keeps \(form.contentType)")
    }
}
