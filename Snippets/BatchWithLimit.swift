// Many photos, one request each, three at a time; one failure does not end the others.
//
// Usage: BatchWithLimit URL PHOTO...

import Foundation
import PostcardClient

guard let url = CommandLine.arguments.dropFirst().first.flatMap({ URL(string: $0) }) else {
    print("Usage: BatchWithLimit URL PHOTO...")
    exit(64)
}
let photos = CommandLine.arguments.dropFirst(2).map { URL(filePath: $0) }

// snippet.show
let batch = UploadClient().uploadEach(photos, to: url, maximumConcurrentUploads: 3) { photo in
    var form = MultipartForm()
    form.append(fileAt: photo, named: "petImage")
    return form
}
for await outcome in batch {
    let name = photos[outcome.index].lastPathComponent
    switch outcome.result {
    case .success(let response): print("\(name): \(response.status)")
    case .failure(let error): print("\(name): \(error)")
    }
    print("\(Int((batch.progress.fraction ?? 0) * 100)) % of all")
}
