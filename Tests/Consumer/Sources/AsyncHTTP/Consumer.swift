import PostcardAsyncHTTP

@main
struct Consumer {
    static func main() {
        var form = MultipartForm()
        form.append("초코", named: "name")
        let client = UploadClient(transport: AsyncHTTPTransport())
        print("\(type(of: client)) sends \(form.contentType)")
    }
}
