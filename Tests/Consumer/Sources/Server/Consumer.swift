import Hummingbird
import PostcardForm
import PostcardServer

struct Pet: Decodable {
    var name: String
    var pictures: [FormFile]
}

@main
struct Consumer {
    static func main() {
        let router = Router()
        router.add(middleware: ProblemMiddleware())
        router.post("pets") { request, _ in
            let pet = try await request.decodeForm(Pet.self)
            return "\(pet.name) has \(pet.pictures.count) pictures"
        }
        let application = Application(router: router, server: .uploads())
        print("\(type(of: application)) receives forms")
    }
}
