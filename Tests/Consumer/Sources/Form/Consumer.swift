import FoundationEssentials
import PostcardDoctor
import PostcardForm

@main
struct Consumer {
    static func main() async throws {
        var form = MultipartForm()
        form.append("초코", named: "name")
        let body = Array(try await form.layout().data())
        var examination = FormExamination(contentType: form.contentType)
        examination.read(body.span.bytes)
        print("\(body.count) bytes with \(examination.finish().findings.count) problems")
    }
}
