import PostcardClient
import PostcardForm

@main
struct Consumer {
    static func main() {
        var form = MultipartForm()
        form.append("초코", named: "name")
        print("\(type(of: UploadClient())) sends \(form.contentType)")
    }
}
