// Photos that fit what the server accepts: each one, all of a form together, or as the server itself reports.
//
// Usage: PhotosThatFit URL PHOTO...

import Foundation
import PostcardClient
import PostcardPictures

guard let url = CommandLine.arguments.dropFirst().first.flatMap({ URL(string: $0) }) else {
    print("Usage: PhotosThatFit URL PHOTO...")
    exit(64)
}
let photos = CommandLine.arguments.dropFirst(2).map { URL(filePath: $0) }

// snippet.show
var form = MultipartForm()
form.append("초코", named: "name")
form.append(photos: photos, named: "petImage", fitting: PictureLimit(maximumBytes: 1_000_000))
// snippet.hide

var small = MultipartForm()
small.append(photos: photos, named: "petImage", fitting: .form(maximumBytes: 5_000_000))

var large = MultipartForm()
large.append(photos: photos, named: "petImage", fitting: .serverLimit)

do {
    for form in [form, small, large] {
        print(try await UploadClient().upload(form, to: url).status)
    }
} catch let error as PictureFitError {
    print(error)
}
